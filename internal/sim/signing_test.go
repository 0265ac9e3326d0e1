package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"daesa/internal/postgres"
	"daesa/ledger"
	"daesa/pgclient/tosssim"
	"daesa/reconcile"
)

// signature is what a person last signed of a business day.
type signature struct {
	at      time.Time
	pending bool // something of the day was still owed
}

// sign is people of finance who sign days that are over, some of them, if the days may be signed.
func (s *story) sign() {
	s.Helper()
	for day := ledger.DayOf(s.opening); day.End().Add(2 * listLag).Before(s.clock.Now()); day = day.Next() {
		if by := []ledger.Actor{"os:finance", "os:auditor"}[s.people.IntN(2)]; s.people.IntN(3) > 0 {
			s.signDay(day, by)
		}
	}
}

// signDay signs a day as it says it is now. One that something contradicts is refused.
func (s *story) signDay(day ledger.Day, by ledger.Actor) {
	s.Helper()
	auditor, err := reconcile.NewAuditor(reconcile.Config{
		DB: s.db, Metrics: reconcile.NewMetrics(prometheus.NewRegistry()), Now: s.now, OpeningAt: s.opening, ListLag: listLag,
	})
	s.must(err)
	wish := reconcile.Signing{Day: day, By: by, Note: "as the books say"}
	signed, err := auditor.Sign(s.ctx(), wish)
	if errors.Is(err, reconcile.ErrNotAcknowledged) {
		s.lookAt(day, colleague(by))
		signed, err = auditor.Sign(s.ctx(), wish)
	}
	switch {
	case errors.Is(err, reconcile.ErrDayNotClosed), errors.Is(err, reconcile.ErrDayDiffers):
		s.tell("%s may not sign %s", by, day)
		return
	case err != nil:
		s.must(err)
	case signed.Again:
		return
	}
	if c := s.breaking(day); c != nil {
		s.Errorf("%s could be signed, although it breaks: %s", day, c)
	}
	type run struct {
		Verdict reconcile.Verdict `db:"verdict"`
	}
	says := rowsOf[run](s.town, `SELECT verdict FROM audit_runs WHERE run_id = $1`, signed.RunID)[0].Verdict
	s.signed[day] = signature{at: s.clock.Now(), pending: says == reconcile.VerdictPending}
	s.requireRead()
	s.signs++
	s.tell("%s signs %s, which is %s", by, day, says)
}

func colleague(of ledger.Actor) ledger.Actor {
	if of == "os:finance" {
		return "os:auditor"
	}
	return "os:finance"
}

// lookAt is somebody who notes that they have seen how a signed day changed.
func (s *story) lookAt(day ledger.Day, by ledger.Actor) {
	s.Helper()
	type known struct {
		ID int64 `db:"mismatch_id"`
	}
	found := rowsOf[known](s.town, `
		SELECT mismatch_id FROM mismatches WHERE kind = 'signed_day_changed' AND transaction_key = 'day:' || $1 AND status <> 'resolved'`, string(day))
	if len(found) != 1 {
		s.Errorf("%s must be acknowledged as changed, and %d mismatches say that it did", day, len(found))
		return
	}
	s.must(postgres.InTx(s.ctx(), s.db, func(tx pgx.Tx) error {
		two := ledger.SecondPerson{Above: ledger.DefaultSecondPersonAbove}
		_, err := ledger.ChangeMismatch(s.ctx(), tx, found[0].ID, ledger.Change{Step: ledger.StepNote, By: by, Note: "seen"}, two, s.now())
		return err
	}))
	s.tell("%s has seen how %s changed", by, day)
}

// breaking is something for which a day has been breaking for an hour.
func (s *story) breaking(day ledger.Day) *claim {
	for _, c := range s.claims {
		if c.day == day && c.mustShow(s.clock.Now(), time.Hour) {
			return c
		}
	}
	return nil
}

// requireSigned: a signed day that says something else now is one mismatch, and no other day is.
func (s *story) requireSigned(final bool) {
	s.Helper()
	type changed struct {
		Key    string `db:"transaction_key"`
		Status string `db:"status"`
		Detail string `db:"detail"`
	}
	status := map[ledger.Day]string{}
	for _, m := range rowsOf[changed](s.town, `SELECT transaction_key, status, detail FROM mismatches WHERE kind = $1`, ledger.KindSignedDayChanged) {
		day := ledger.Day(strings.TrimPrefix(m.Key, "day:"))
		status[day] = m.Status
		if why := s.mayChange(day); why == "" {
			s.Errorf("FALSE ALARM: the signed %s is said to have changed, and nothing of it did: %s", day, m.Detail)
		}
	}
	for day, g := range s.signed {
		c := s.breaking(day)
		switch {
		case c != nil && !c.wordless && (final || c.unless == nil) && (status[day] == "" || status[day] == "resolved"):
			s.Errorf("MISS: %s was signed at %s and says something else since, its mismatch is %q: %s", day, g.at, status[day], c)
		case final && s.mendedWhole(day) && status[day] != "" && status[day] != "resolved":
			s.Errorf("%s says again what was signed, and its mismatch is %s", day, status[day])
		}
	}
}

// mayChange says why a signed day may say something else than what was signed; nothing when it may not. Beside what
// contradicts it, that is money whose kind the list itself shows late: an approval listed as canceled that was owed when
// the day was signed, and deposits that fell back and came again, or into whose account a cancel went.
func (s *story) mayChange(day ledger.Day) (why string) {
	g, signed := s.signed[day]
	switch {
	case !signed:
		return ""
	case slices.ContainsFunc(s.claims, func(c *claim) bool { return c.day == day }):
		return "something contradicts it"
	case g.pending && s.front.quirks.presentStatus:
		return "an approval was listed as canceled"
	}
	if payment := s.fellOn(day); payment != "" {
		return fmt.Sprintf("the deposit of %s fell back", payment)
	}
	return ""
}

// fellOn is a payment of which the list had something on a day, and whose deposit fell back whenever.
func (s *story) fellOn(day ledger.Day) (payment string) {
	s.front.with(func() {
		for _, row := range s.front.shown {
			if ledger.DayOf(row.At) == day && slices.ContainsFunc(s.sales, func(x *sale) bool {
				return x.key == row.Payment && x.method == tosssim.VirtualAccount && !x.fell.IsZero()
			}) {
				payment = row.Payment
			}
		}
	})
	return payment
}

// mendedWhole reports whether everything that contradicted a day was mended, and nothing else may have changed it.
func (s *story) mendedWhole(day ledger.Day) bool {
	any := false
	for _, c := range s.claims {
		switch {
		case c.day != day:
		case c.mended.IsZero() || c.accepted || s.signed[day].at.After(c.mended) || c.wordless:
			return false
		default:
			any = true
		}
	}
	return any && !s.signed[day].pending && s.fellOn(day) == ""
}

// requireRead: a closing run that calls a day reconciled began when the list had been read past the day and its lag.
func (s *story) requireRead() {
	s.Helper()
	type run struct {
		ID      int64             `db:"run_id"`
		Day     string            `db:"day"`
		Verdict reconcile.Verdict `db:"verdict"`
	}
	for _, r := range rowsOf[run](s.town, `
		SELECT run_id, to_char(day, 'YYYY-MM-DD') AS day, verdict FROM audit_runs WHERE scope = 'day' AND run_id > $1 ORDER BY run_id`, s.checked) {
		s.checked = r.ID
		settled := r.Verdict == reconcile.VerdictReconciled || r.Verdict == reconcile.VerdictPending
		if needed := ledger.Day(r.Day).End().Add(listLag - time.Minute); settled && s.readAt.Before(needed) {
			s.Errorf("the closing of %s is %s, although the list was last read at %s", r.Day, r.Verdict, s.readAt)
		}
	}
}
