package opening_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"daesa/ledger"
	"daesa/reconcile/opening"
)

// TestReadCSV_Shapes: what Korean offices make of a CSV is read; what is not a list of payments is refused with the line.
func TestReadCSV_Shapes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file, refused string }{
		{"plain", "payment_key,order_id,amount\npay-1,order-1,1000\n", ""},
		{"byte order mark and CRLF", "\ufeffpayment_key,order_id,amount\r\npay-1,order-1,1000\r\n", ""},
		{"quoted, other order, spaces", "Amount, order_id ,payment_key\n\"1,000\", order-1 ,\"pay-1\"\n", ""},
		{"Korean", "결제키,주문번호,금액\npay-1,order-1,1000\n", ""},
		{"no end of line", "payment_key,order_id,amount\npay-1,order-1,1000", ""},
		{"a rejects file", "payment_key,order_id,amount,line,reason\npay-1,order-1,1000,7,the gateway's amount is 2\n", ""},
		{"a rejects file with marks", "payment_key,order_id,amount,name,text_mark,line,reason\n'pay-1,'order-1,1000,'=1,,7,odd\n", ""},
		{"empty", "", "empty"},
		{"no header", "pay-1,order-1,1000\n", "line 1"},
		{"a column that nobody knows", "payment_key,order_id,amount,fee\n", "fee"},
		{"a column twice", "payment_key,order_id,amount,금액\n", "amount stands there twice"},
		{"a column missing", "payment_key,amount\n", "order_id (주문번호)"},
		{"a broken quote", "payment_key,order_id,amount\npay-1,order-1,1000\npay-2,\"order-2,1000\n", "line 3"},
		{"CP949", "payment_key,order_id,amount,name\npay-1,order-1,1000,\xbb\xf3\xc7\xb0\n", "UTF-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			claims, err := opening.ReadCSV("x.csv", []byte(test.file))
			if test.refused != "" {
				if !errors.Is(err, opening.ErrFile) || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v, want %q", err, test.refused)
				}
				return
			}
			if err != nil || len(claims.Rows) != 1 || claims.Rows[0].Problem != "" || claims.Rows[0].Amount != ledger.Won(1000) ||
				claims.Rows[0].PaymentKey != "pay-1" || claims.Rows[0].OrderID != "order-1" {
				t.Errorf("got %+v and %v", claims.Rows, err)
			}
		})
	}
}

// TestReadCSV_Rows: a row says what is wrong with it, with its line, and the others are read.
func TestReadCSV_Rows(t *testing.T) {
	t.Parallel()
	const header = "payment_key,order_id,amount,currency,canceled,approved_at,ordered_at,customer_id,name,credits\n"
	for _, test := range []struct{ row, problem string }{
		{"pay-1,order-1,1000,,,,,,,", ""},
		{"pay-1,order-1,10.50,usd,0.5,2026-03-10 10:15:28,2026-03-10T10:00:00+09:00,kim,상품,5", ""},
		{"pay-1,order-1,1000.5,,,,,,,", "amount"},
		{"pay-1,order-1,1e3,,,,,,,", "amount"},
		{`pay-1,order-1,"10,00",,,,,,,`, "amount"},
		{"pay-1,order-1,0,,,,,,,", "amount"},
		{"pay-1,order-1,-5,,,,,,,", "amount"},
		{"pay-1,order-1,9999999999999,,,,,,,", "amount"},
		{"pay-1,order-1,1000,EUR,,,,,,", "amount"},
		{"pay-1,order-1,1000,,1001,,,,,", "canceled"},
		{"../x,order-1,1000,,,,,,,", "payment_key"},
		{"pay-1,71,1000,,,,,,,", "order_id"},
		{"pay-1,order-1,1000,,,yesterday,,,,", "approved_at"},
		{"pay-1,order-1,1000,,,,,,,7", "customer_id"},
		{"pay-1,order-1,1000,,,,,kim,,-7", "credits"},
		{"pay-1,order-1,1000,,,,,kim\x00,,", "customer_id"},
		{"pay-1,order-1,1000,,,,,,,,", "11 fields"},
	} {
		claims, err := opening.ReadCSV("x.csv", []byte(header+test.row+"\npay-9,order-9,9,,,,,,,\n"))
		if err != nil || len(claims.Rows) != 2 || claims.Rows[1].Problem != "" || claims.Rows[1].Line != 3 {
			t.Errorf("%s: got %+v and %v", test.row, claims.Rows, err)
			continue
		}
		if got := claims.Rows[0].Problem; (got == "") != (test.problem == "") || !strings.Contains(got, test.problem) {
			t.Errorf("%s: got %q, want %q", test.row, got, test.problem)
		}
	}
	claims, _ := opening.ReadCSV("x.csv", []byte(header+"pay-1,order-1,10.50,usd,0.5,2026-03-10 10:15:28,,,,\n"))
	if c := claims.Rows[0]; c.Amount.Minor != 1050 || c.Canceled.Minor != 50 || !c.CapturedAt.Equal(time.Date(2026, 3, 10, 1, 15, 28, 0, time.UTC)) {
		t.Errorf("got %+v", c)
	}
}

// TestWriteRejects_ComeBackToTheByte: whatever a rejected row holds, no cell of the file of rejects is run or changed by a
// spreadsheet, and who imports the file again imports what was written first.
func TestWriteRejects_ComeBackToTheByte(t *testing.T) {
	t.Parallel()
	header := []string{"payment_key", " Order_ID", "금액", "name", "reason", "credits", "customer_id"}
	kept := []int{0, 1, 2, 3, 5, 6}
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOf(rapid.RuneFrom([]rune("=+-@＝−;\t\r\n'\"\\ \u00a0019.E/가a\u200b\x00,")))
		var rows []opening.Row
		for n := range rapid.IntRange(1, 3).Draw(t, "rows") {
			fields := rapid.SliceOfN(cell, len(header), len(header)).Draw(t, "fields")
			rows = append(rows, opening.Row{
				Claim: opening.Claim{Line: n + 2, Fields: fields}, Result: opening.ResultRejected, Reason: cell.Draw(t, "reason"),
			})
		}
		var file bytes.Buffer
		if err := opening.WriteRejects(&file, header, append(rows, opening.Row{Result: opening.ResultImported})); err != nil {
			t.Fatal(err)
		}
		cells, err := csv.NewReader(bytes.NewReader(file.Bytes())).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range cells[1:] {
			for _, c := range record {
				if first := strings.TrimLeft(c, " \"\u00a0\u200b\x00\t\r\n"); first != "" && strings.Contains("=+-@＝−", string([]rune(first)[:1])) {
					t.Fatalf("%q is a formula in %q", c, file.String())
				}
			}
		}
		back, err := opening.ReadCSV("x.rejects.csv", file.Bytes())
		if err != nil || len(back.Rows) != len(rows) {
			t.Fatalf("%q is read as %d rows: %v", file.String(), len(back.Rows), err)
		}
		for n, r := range back.Rows {
			for at, of := range kept {
				if want := rows[n].Claim.Fields[of]; r.Fields[at] != want {
					t.Fatalf("%q comes back as %q", want, r.Fields[at])
				}
			}
		}
	})
	numbers := []opening.Row{{Claim: opening.Claim{Line: 2, Fields: []string{"pay-1", "order-1", "1,000", "0012", "", "7", "=cmd|x"}}, Result: opening.ResultRejected, Reason: "odd"}}
	var file bytes.Buffer
	if err := opening.WriteRejects(&file, header, numbers); err != nil {
		t.Fatal(err)
	}
	if want := "\ufeffpayment_key,\" Order_ID\",금액,name,credits,customer_id,text_mark,line,reason\npay-1,order-1,\"1,000\",'0012,7,'=cmd|x,,2,odd\n"; file.String() != want {
		t.Errorf("got %q, want %q", file.String(), want)
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte("payment_key,order_id,amount\npay-1,order-1,1000\n"))
	f.Add([]byte("\ufeff결제키,주문번호,금액,적립금\r\n\"pay\",x,\"1,000\",\r\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		claims, err := opening.ReadCSV("x.csv", content)
		if err != nil {
			return
		}
		for _, c := range claims.Rows {
			if c.Line < 2 || (c.Problem == "" && (!c.Amount.Positive() || c.PaymentKey == "" || c.OrderID == "")) {
				t.Errorf("%+v", c)
			}
		}
	})
}
