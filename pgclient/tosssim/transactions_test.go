package tosssim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"daesa/pgclient/tosssim"
)

type listRow struct {
	TransactionKey, PaymentKey, OrderID, Status, TransactionAt, Currency string
	Amount                                                               json.Number
	CustomerKey                                                          *string
}

const today = "startDate=2026-04-15T00:00:00&endDate=2026-04-15T23:59:59"

func (s *shop) list(query string) []listRow {
	s.t.Helper()
	out := s.must(http.MethodGet, "/v1/transactions?"+query, "")
	var rows []listRow
	if err := json.Unmarshal(out.body, &rows); err != nil || out.status != http.StatusOK {
		s.t.Fatalf("list: %d %s", out.status, out.body)
	}
	return rows
}

func TestListHasARowForEachTransaction(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	card := s.paid("order-1")
	s.cancel(card, `,"cancelAmount":12000`)
	account := s.Authenticate(tosssim.Checkout{OrderID: "order-2", Amount: 70_000, Method: tosssim.VirtualAccount, CustomerKey: "c"})
	mustDo(t, s.Approve(account))
	mustDo(t, s.Deposit(account))
	mustDo(t, s.RevertDeposit(account))
	s.cancel(account, "")
	var got []string
	rows := s.list(today)
	for _, row := range rows {
		got = append(got, row.OrderID+" "+row.Status+" "+row.Amount.String())
	}
	want := []string{
		"order-1 DONE 50000", "order-1 PARTIAL_CANCELED 12000", "order-2 WAITING_FOR_DEPOSIT 0", "order-2 DONE 70000",
		"order-2 WAITING_FOR_DEPOSIT 0", "order-2 CANCELED 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q", got)
	}
	if rows[0].TransactionAt != "2026-04-15T10:00:00+09:00" || rows[0].CustomerKey != nil || *rows[2].CustomerKey != "c" {
		t.Errorf("rows %+v", rows)
	}
	if got := s.get(card).text("lastTransactionKey"); got != rows[1].TransactionKey {
		t.Errorf("the cancel's row has key %s, the payment %s", rows[1].TransactionKey, got)
	}
}

func TestListSignOfCancels(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{CancelRowSign: -1})
	s.cancel(s.paid("order-1"), "")
	if rows := s.list(today); rows[1].Amount != "-50000" {
		t.Errorf("rows %+v", rows)
	}
}

func TestListWindowsAndPages(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	for i := range 5 {
		mustDo(t, s.Approve(s.Authenticate(tosssim.Checkout{OrderID: fmt.Sprintf("order-%d", i), Amount: 1000})))
		s.clock.Advance(time.Hour)
	}
	page := s.list(today + "&limit=2")
	rest := s.list(today + "&limit=5000&startingAfter=" + page[1].TransactionKey)
	if len(page) != 2 || len(rest) != 3 || rest[0].OrderID != "order-2" {
		t.Errorf("pages %+v %+v", page, rest)
	}
	// Both ends are inside, and times are Korean.
	if rows := s.list("startDate=2026-04-15T11:00:00&endDate=2026-04-15T12:00:00"); len(rows) != 2 || rows[0].OrderID != "order-1" {
		t.Errorf("window %+v", rows)
	}
	if rows := s.list("startDate=2026-04-15&endDate=2026-04-16"); len(rows) != 5 {
		t.Errorf("days %+v", rows)
	}
	if out := s.must(http.MethodGet, "/v1/transactions?startDate=2026-04-01&endDate=2026-04-02", ""); string(out.body) != "[]" {
		t.Errorf("empty window %s", out.body)
	}
	outside := "/v1/transactions?startDate=2026-04-15T11:00:00&endDate=2026-04-15T12:00:00&startingAfter=" + page[0].TransactionKey
	wantRefusal(t, s.must(http.MethodGet, outside, ""), http.StatusBadRequest, "INVALID_TRANSACTION_KEY")
	for _, query := range []string{
		"", "startDate=2026-04-15", "startDate=2026-04-15T00:00:00Z&endDate=2026-04-16",
		"startDate=2026-04-15T00:00:00.000&endDate=2026-04-16", "startDate=2026-04-16&endDate=2026-04-15",
	} {
		wantRefusal(t, s.must(http.MethodGet, "/v1/transactions?"+query, ""), http.StatusBadRequest, "INVALID_DATE")
	}
	for _, limit := range []string{"0", "5001", "x"} {
		wantRefusal(t, s.must(http.MethodGet, "/v1/transactions?"+today+"&limit="+limit, ""), http.StatusBadRequest, "INVALID_REQUEST")
	}
}

func TestListDefaultLimitAndSeededRows(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{})
	for i := range 101 {
		mustDo(t, s.PutTransaction(fmt.Appendf(nil,
			`{"transactionKey":"t%d","transactionAt":"2026-04-15T09:00:00+09:00","odd": 1.50}`, i)))
	}
	if rows := s.list(today); len(rows) != 100 {
		t.Errorf("%d rows", len(rows))
	}
	out := s.must(http.MethodGet, "/v1/transactions?"+today+"&limit=1", "")
	if !strings.Contains(string(out.body), `"odd":1.50`) {
		t.Errorf("seeded row %s", out.body)
	}
	for _, bad := range []string{`[]`, `{"transactionKey":"t"}`, `{"transactionAt":"2026-04-15T09:00:00+09:00"}`} {
		if s.PutTransaction([]byte(bad)) == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestListLag(t *testing.T) {
	t.Parallel()
	s := newShop(t, tosssim.Config{ListLag: time.Minute})
	s.paid("order-1")
	if rows := s.list(today); len(rows) != 0 {
		t.Errorf("at once: %+v", rows)
	}
	s.clock.Advance(time.Minute)
	if rows := s.list(today); len(rows) != 1 {
		t.Errorf("after the lag: %+v", rows)
	}
}

// TestListShowsAFallenDeposit in every way that it may have.
func TestListShowsAFallenDeposit(t *testing.T) {
	t.Parallel()
	for way, want := range map[tosssim.FallenRow]string{
		tosssim.FallenRowOwn:     "WAITING_FOR_DEPOSIT 0, DONE 70000, WAITING_FOR_DEPOSIT 0",
		tosssim.FallenRowInPlace: "WAITING_FOR_DEPOSIT 0, WAITING_FOR_DEPOSIT 70000",
		tosssim.FallenRowGone:    "WAITING_FOR_DEPOSIT 0",
		tosssim.FallenRowNone:    "WAITING_FOR_DEPOSIT 0, DONE 70000",
	} {
		s := newShop(t, tosssim.Config{FallenRow: way})
		key, _ := issued(t, s)
		mustDo(t, s.Deposit(key))
		mustDo(t, s.RevertDeposit(key))
		var rows []string
		for _, r := range s.list(today) {
			rows = append(rows, r.Status+" "+r.Amount.String())
		}
		if got := strings.Join(rows, ", "); got != want {
			t.Errorf("%s: got %s, want %s", way, got, want)
		}
	}
}
