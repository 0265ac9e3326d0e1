package overload

import (
	"context"
	"fmt"
	"net/http"

	"daesa/cmd/lab/harness"
	"daesa/pgclient/tosssim"
)

// noticeKind is what a notice of a mix is about.
type noticeKind string

const (
	noticeIgnored   noticeKind = "ignored"   // a payment was approved, which is known
	noticeDuplicate noticeKind = "duplicate" // of a cancel that is applied
	noticeCancel    noticeKind = "cancel"    // of a cancel that is not
)

// mixed is notices in the order in which they are sent, and what each is.
type mixed struct {
	notices []tosssim.Notice
	kinds   []noticeKind
}

// of picks the answers to notices of a kind.
func (m mixed) of(kind noticeKind) func(harness.Sent) bool {
	return func(s harness.Sent) bool { return m.kinds[s.N] == kind }
}

// kindOf mixes: of each ten, six are ignored, two are duplicates and two are cancels.
func kindOf(n int) noticeKind {
	switch n % 10 {
	case 2, 7:
		return noticeDuplicate
	case 4, 9:
		return noticeCancel
	}
	return noticeIgnored
}

// mix sells n payments and has a notice of each: that it was approved, or that it was canceled. Of those that will be
// duplicates the notice has been applied before.
func mix(ctx context.Context, b *harness.Bench, n int) (m mixed, err error) {
	payments, err := b.Paid(ctx, n)
	if err != nil {
		return m, err
	}
	for i, p := range payments {
		m.kinds = append(m.kinds, kindOf(i))
		if m.kinds[i] != noticeIgnored {
			if err := b.Gateway.Cancel(ctx, p.Key); err != nil {
				return m, err
			}
		}
	}
	if m.notices, err = latest(ctx, b, payments); err != nil {
		return m, err
	}
	var before []tosssim.Notice
	for i, notice := range m.notices {
		if m.kinds[i] == noticeDuplicate {
			before = append(before, notice)
		}
	}
	return m, applied(ctx, b, before)
}

// latest is the newest notice of each payment.
func latest(ctx context.Context, b *harness.Bench, payments []harness.Payment) ([]tosssim.Notice, error) {
	all, err := b.Gateway.Notices(ctx)
	if err != nil {
		return nil, err
	}
	newest := make(map[string]tosssim.Notice, len(all))
	for _, notice := range all { // oldest first
		newest[notice.PaymentKey] = notice
	}
	list := make([]tosssim.Notice, len(payments))
	for i, p := range payments {
		list[i] = newest[p.Key]
	}
	return list, nil
}

// preparing is how fast notices are sent while a run is prepared.
const preparing = 100

// applied delivers notices that must be applied at once.
func applied(ctx context.Context, b *harness.Bench, notices []tosssim.Notice) error {
	if len(notices) == 0 {
		return nil
	}
	o, err := b.Run(ctx, harness.Plan{Name: "prepared", Streams: []harness.Stream{harness.Notices(preparing, notices, 0)}})
	if err != nil {
		return err
	}
	if done := o.Of("notices").Count(harness.Answered(http.StatusOK, "")); done != len(notices) { // or found in the list before
		return fmt.Errorf("%d of %d cancels were applied while the gateway is healthy: %s", done, len(notices), o.Of("notices").Answers())
	}
	return nil
}

// refused are the notices that were not answered 200, and so come again.
func (m mixed) refused(s harness.Sending) (again []tosssim.Notice) {
	for _, one := range s.Sent {
		if one.Status != http.StatusOK {
			again = append(again, m.notices[one.N])
		}
	}
	return again
}
