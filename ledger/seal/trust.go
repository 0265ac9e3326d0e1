package seal

import (
	"context"
	"errors"
	"fmt"

	"daesa/ledger"
)

// checkWitness holds the newest head that the witness knows against the database, writes down the heads that other
// instances have made since, each proven to follow, and returns the newest. A witness that knows nothing of a sealed
// journal is refused: whatever the database says now would become the truth.
func (s *Sealer) checkWitness(ctx context.Context) (newest Witnessed, err error) {
	known, err := s.cfg.Witness.Read()
	if err != nil {
		return newest, err
	}
	if len(known) == 0 {
		last, err := ledger.LastHead(ctx, s.cfg.DB)
		if errors.Is(err, ledger.ErrNotSealed) {
			return newest, nil
		}
		if err != nil {
			return newest, err
		}
		if _, ours := s.keys[last.KeyID]; ours && last.Sequence == 1 {
			return s.catchUp(ctx, newest) // a crash came between the first head and its line
		}
		return newest, fmt.Errorf("the journal is sealed up to head %d of %s and the witness %s knows no head: bring the file of before, or run daesa verify with --new-heads-file: %w",
			last.Sequence, last.Day, s.cfg.Witness.path, ErrBroken)
	}
	newest = known[len(known)-1]
	heads, err := ledger.HeadsAfter(ctx, s.cfg.DB, newest.Sequence-1, 1)
	if err != nil {
		return newest, err
	}
	if len(heads) == 0 || heads[0].Sequence != newest.Sequence || heads[0].Hash != newest.Hash || heads[0].Digest() != newest.Hash {
		return newest, fmt.Errorf("head %d of %s was witnessed and is not in the database: %w", newest.Sequence, newest.Day, ErrBroken)
	}
	return s.catchUp(ctx, newest)
}

// catchUp adds to the witness what follows its newest head, each signed with a known key.
func (s *Sealer) catchUp(ctx context.Context, newest Witnessed) (Witnessed, error) {
	for {
		heads, err := ledger.HeadsAfter(ctx, s.cfg.DB, newest.Sequence, 100)
		if err != nil || len(heads) == 0 {
			return newest, err
		}
		for _, h := range heads {
			wrong := checkSignature(h, s.keys)
			if h.Sequence != newest.Sequence+1 || h.Previous != newest.Hash {
				wrong = "it does not follow the one before"
			}
			if wrong != "" {
				return newest, fmt.Errorf("head %d of %s: %s: %w", h.Sequence, h.Day, wrong, ErrBroken)
			}
			if err := s.cfg.Witness.Append(h); err != nil {
				return newest, err
			}
			newest = witnessed(h)
		}
	}
}
