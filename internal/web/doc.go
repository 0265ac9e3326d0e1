// Package web is what every HTTP route of the service shares, and knows nothing of payments.
//
// A route is a [Handler]: it returns an error instead of writing one. The [Adapter] turns that error into an RFC 9457
// problem by one table, logs it once, and is the only place that writes a status of 400 or more; [Adapter.Fail] is the
// same door for middleware. [Decode] reads a request of our own API strictly; [ReadBody] and [CheckObject] read what
// somebody else sends, whose raw bytes matter.
//
// Every middleware is a func(http.Handler) http.Handler in a file of its own. The order they are meant for is: request
// id, recover, access log, in-flight gauge, admission, timeout, handler.
//
// Start reading at adapter.go.
package web
