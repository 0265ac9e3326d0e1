// Package admission decides which requests are let in before any work is done for them.
//
// [RateLimit] bounds what one source may send: an allowance per address that refills evenly, 429 when it is spent. All
// instances spend the same one, in [Database]; without an answer from there each gives out its share. [Gate] bounds what
// the service does at once: requests belong to a [Class], each class has slots that nobody else may take, and look-ups
// are shed before money is, with 503. Both tell when to come back.
//
// Refusing a cancel notice loses nothing: the gateway sends it again at 1, 4, 16, 64, 256, 1,024 and 4,096 minutes, and
// the audit of the gateway's own list finds what redelivery does not bring.
//
// Start reading at gate.go, then ratelimit.go.
package admission
