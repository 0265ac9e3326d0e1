package seal

import (
	"slices"
	"time"

	"daesa/ledger"
)

// checkOutside holds the chain against what is kept outside the database. Without any of it nothing vouches for the end:
// whoever can change the database can cut off what came last, with the heads.
func (v *verifier) checkOutside() {
	vouched := false
	newest := ledger.Head{}
	if len(v.heads) > 0 {
		newest = v.heads[len(v.heads)-1]
	}
	for _, w := range v.options.Witnessed {
		if v.options.Through != "" && w.Day > v.options.Through {
			continue
		}
		vouched = vouched || w.Hash == newest.Hash
		if !v.has(w.Sequence, w.Hash) {
			v.report.found(atEnd(w.Sequence, "of %s: it was witnessed as %s and is not in the database, which ends at head %d; what came after transaction %d cannot be trusted",
				w.Day, w.Hash, newest.Sequence, v.upToBefore(w.Sequence)))
		}
	}
	for _, hash := range v.options.Heads {
		vouched = vouched || hash == newest.Hash
		is := func(h ledger.Head) bool { return h.Hash == hash && h.Digest() == hash }
		if !slices.ContainsFunc(v.heads, is) && !slices.ContainsFunc(v.later, is) {
			v.report.found(atEnd(0, "the head %s is not in the database, which ends at head %d", hash, newest.Sequence))
		}
	}
	if len(v.keys) == 0 && len(v.heads) > 0 {
		v.report.warn("no key was given: a chain of other heads, hashed anew, would look the same")
	}
	v.warnOfEnd(vouched, newest)
}

func (v *verifier) warnOfEnd(vouched bool, newest ledger.Head) {
	ended := ledger.DayOf(ledger.DayOf(v.options.Now).Start().Add(-time.Hour))
	switch {
	case len(v.heads) == 0 && len(v.keys) > 0 && len(v.sections) > 1:
		v.report.found(atEnd(0, "there is no head, and a key to verify them with: sealing never ran, or every head was removed"))
	case len(v.heads) == 0:
		v.report.warn("the journal is not sealed: nothing shows whether its history was changed")
	case !vouched:
		v.report.warn("nothing outside the database vouches for head %d: what came after it may have been cut off, heads and all", newest.Sequence)
	case v.options.Through == "" && newest.Day < ended:
		v.report.warn("the newest head is of %s, and %s has ended", newest.Day, ended)
	}
}

// has reports whether the chain has the head in its place, and the head is what its hash says.
func (v *verifier) has(sequence int64, hash ledger.Digest) bool {
	i, found := slices.BinarySearchFunc(v.heads, sequence, func(h ledger.Head, s int64) int {
		return int(min(1, max(-1, h.Sequence-s)))
	})
	return found && v.heads[i].Hash == hash && v.heads[i].Digest() == hash
}

// upToBefore is where the newest head before a sequence number ends.
func (v *verifier) upToBefore(sequence int64) int64 {
	upTo := int64(0)
	for _, h := range v.heads {
		if h.Sequence < sequence {
			upTo = h.UpToID
		}
	}
	return upTo
}
