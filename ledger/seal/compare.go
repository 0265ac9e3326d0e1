package seal

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"daesa/ledger"
)

// readBooks streams the tables beside the journal, two at a time.
func (v *verifier) readBooks(ctx context.Context, first, second pgx.Tx) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all := books()
	conns := []pgx.Tx{first, second}
	flows := make([]*flow, len(all))
	start := func(i int) {
		if i < len(all) {
			flows[i] = startFlow(ctx, conns[i%2].Conn().PgConn(), all[i].sql)
		}
	}
	var failed error
	start(0)
	start(1)
	for i, b := range all {
		if failed == nil {
			failed = v.readBook(b, flows[i].reader())
		}
		if failed != nil {
			stop()
		}
		if flows[i] != nil {
			flows[i].drain()
		}
		if failed == nil {
			start(i + 2)
		}
	}
	return failed
}

func (v *verifier) readBook(b book, rows *copied) error {
	count := int64(0)
	for {
		row, err := rows.row()
		if err != nil {
			return fmt.Errorf("read %s: %w", b.name, err)
		}
		if row == nil {
			v.report.Books = append(v.report.Books, Table{b.name, count})
			return nil
		}
		count++
		if wrong := b.add(&v.facts, row); wrong != "" {
			v.report.found(inState(0, "%s", wrong))
		}
	}
}

// compare asks for the rows behind every pair whose sums differ.
func (v *verifier) compare(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `SET LOCAL enable_sort = on`); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	for id := range pairCount {
		if p := v.facts.pairs[id]; p.journal == p.books {
			continue
		}
		c := comparisonOf(id)
		found, err := differences(ctx, tx, c)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			v.report.found(inState(0, "entries and tables differ in %s, and no row shows it", c.what))
		}
		for _, d := range found {
			v.report.found(v.differs(c, d))
		}
	}
	return nil
}

// differs is a difference as a break. Where its entry is sealed and unchanged, it is the row beside the journal that was
// changed.
func (v *verifier) differs(c comparison, d difference) Break {
	what := fmt.Sprintf("%s: %s %s by the journal, %s by its row", d.Subject, c.what, d.Journal, d.Books)
	if !c.fact || d.ID == 0 {
		return inState(d.ID, "%s", what)
	}
	if head := v.headOf(d.ID); head != 0 && !slices.ContainsFunc(v.suspects, func(h ledger.Head) bool { return h.Sequence == head }) {
		return inState(d.ID, "%s; the entry is as it was sealed", what)
	}
	b := atEntry(d.ID, 0, "%s", what)
	b.derived = true
	return b
}

// locateMost bounds how many sections are read again to say which of their transactions is wrong.
const locateMost = 3

// locate names the first wrong transaction of each section that is not what was sealed.
func (v *verifier) locate(ctx context.Context, tx pgx.Tx) error {
	for i, h := range v.suspects {
		if i == locateMost {
			v.report.More += int64(len(v.suspects) - i)
			return nil
		}
		b, err := firstWrong(ctx, tx, h)
		if err != nil {
			return err
		}
		v.report.Breaks = append(v.report.Breaks, b) // however many others were seen: these may be the first
	}
	return nil
}
