// Package sim plays days of shop life on the whole service, in accelerated time, and knows from its own log what the
// audit must find. One number, the seed, decides everything that happens: buyers, cancels on either side, virtual
// accounts, other systems on the same merchant id, a gateway that fails, notices that are lost, late, doubled and out of
// order, the process killed at named points, and contradictions that no product can repair.
//
// After every simulated day the verdict must be reconciled, with or without pending, or exactly the contradictions that
// were injected, each once and of the right kind: no false alarm and no miss.
//
// Everything is in test files, so that none of it can reach the program. Start reading at story_test.go (a day), then
// town_test.go (what a story is played on), acts_test.go, weather_test.go (faults), kills_test.go, breaks_test.go,
// mends_test.go (what is put right), signing_test.go and oracle_test.go. guards_test.go takes out the guards of the audit one by one and names the seed that notices.
package sim
