// Package desk is where people work on what is wrong and look at what is waiting: the list of mismatches with their
// evidence and trail, every step a person may make, storms, and the cancels that are still owed an answer. The API and
// the command line are two doors to the same functions; who somebody is comes from the door, never from what they say.
// Start with desk.go.
package desk
