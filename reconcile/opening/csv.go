package opening

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"daesa/internal/sheet"
	"daesa/ledger"
	"daesa/pgclient"
)

// ErrFile reports a file that cannot be read as a whole.
var ErrFile = errors.New("the file is not a list of payments")

// column is one column of the file.
type column struct {
	name, korean string
	required     bool
	read         func(c *Claim, text string) error
}

// columns are the columns a file can have, in any order. Those of a rejects file are read over.
func columns() []column {
	return []column{
		{"payment_key", "결제키", true, readPaymentKey},
		{"order_id", "주문번호", true, readOrderID},
		{"amount", "금액", true, nil}, // read with the currency
		{"currency", "통화", false, nil},
		{"canceled", "취소금액", false, nil},
		{"approved_at", "승인일시", false, func(c *Claim, text string) (err error) { c.CapturedAt, err = readTime(text); return err }},
		{"ordered_at", "주문일시", false, func(c *Claim, text string) (err error) { c.OrderedAt, err = readTime(text); return err }},
		{"customer_id", "고객번호", false, func(c *Claim, text string) (err error) { c.CustomerID, err = readText(text, 128); return err }},
		{"name", "상품명", false, func(c *Claim, text string) (err error) { c.Name, err = readText(text, 100); return err }},
		{"credits", "적립금", false, readCredits},
		{columnMark, "", false, nil},
		{columnLine, "", false, nil},
		{columnReason, "", false, nil},
	}
}

// nameOf is the column that a title names; "" when it names none.
func nameOf(title string) string {
	title = strings.ToLower(strings.TrimSpace(title))
	for _, c := range columns() {
		if c.name == title || (c.korean != "" && c.korean == title) {
			return c.name
		}
	}
	return ""
}

// ReadCSV reads a file of payments, be it one of rejects. A row that cannot be read keeps its problem and the others; a file whose shape is
// broken is refused whole, with the line, because nothing after that line can be trusted.
func ReadCSV(name string, content []byte) (Claims, error) {
	claims := Claims{Source: SourceCSV, Name: name, Digest: sha256.Sum256(content)}
	content = bytes.TrimPrefix(content, []byte(sheet.ByteOrderMark))
	if !utf8.Valid(content) {
		return claims, fmt.Errorf("save it as CSV UTF-8: %w", ErrFile)
	}
	reader := csv.NewReader(bytes.NewReader(content))
	reader.FieldsPerRecord = -1
	header, err := reader.Read()
	if err != nil {
		return claims, fmt.Errorf("%s: %w", shape(err), ErrFile)
	}
	claims.Header = header
	at, err := places(header)
	if err != nil {
		return claims, err
	}
	seen := map[string]int{}
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return claims, nil
		}
		if err != nil {
			return claims, fmt.Errorf("%s: %w", shape(err), ErrFile)
		}
		line, _ := reader.FieldPos(0)
		if _, marked := at[columnMark]; marked {
			for n, cell := range fields {
				fields[n] = sheet.Unguard(cell)
			}
		}
		c := readRow(fields, at, len(header))
		c.Line, c.Fields = line, fields
		if first, again := seen[c.PaymentKey]; again && c.Problem == "" {
			c.Problem = fmt.Sprintf("line %d names the same payment", first)
		} else if c.PaymentKey != "" && !again {
			seen[c.PaymentKey] = line
		}
		claims.Rows = append(claims.Rows, c)
	}
}

// shape names the line at which a file stops being one.
func shape(err error) string {
	var broken *csv.ParseError
	switch {
	case errors.As(err, &broken):
		return fmt.Sprintf("line %d: %v", broken.Line, broken.Err)
	case errors.Is(err, io.EOF):
		return "it is empty"
	}
	return err.Error()
}

// places finds out which column stands where.
func places(header []string) (map[string]int, error) {
	at := map[string]int{}
	for n, title := range header {
		name := nameOf(title)
		if name == "" {
			return nil, fmt.Errorf("line 1: no column is called %.40q: %w", title, ErrFile)
		}
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("line 1: the column %s stands there twice: %w", name, ErrFile)
		}
		at[name] = n
	}
	for _, c := range columns() {
		if _, there := at[c.name]; c.required && !there {
			return nil, fmt.Errorf("line 1: the column %s (%s) is missing: %w", c.name, c.korean, ErrFile)
		}
	}
	return at, nil
}

// readRow reads one row, or notes the first thing that is wrong with it.
func readRow(fields []string, at map[string]int, width int) Claim {
	var c Claim
	if len(fields) != width {
		c.Problem = fmt.Sprintf("%d fields, not %d", len(fields), width)
		return c
	}
	text := func(name string) string {
		if n, there := at[name]; there {
			return strings.TrimSpace(fields[n])
		}
		return ""
	}
	for _, column := range columns() {
		if column.read == nil || (text(column.name) == "" && !column.required) {
			continue
		}
		if err := column.read(&c, text(column.name)); err != nil {
			c.Problem = fmt.Sprintf("%s: %v", column.name, err)
			return c
		}
	}
	c.Problem = readMoney(&c, text)
	if c.Problem == "" && c.Credits > 0 && c.CustomerID == "" {
		c.Problem = "credits: they need a customer_id"
	}
	return c
}

// readMoney reads the amounts, which need the currency.
func readMoney(c *Claim, text func(string) string) (problem string) {
	currency := ledger.KRW
	if word := text("currency"); word != "" {
		currency = ledger.Currency(strings.ToUpper(word))
	}
	amount, err := readAmount(text("amount"), currency)
	switch {
	case err != nil:
		return "amount: " + err.Error()
	case !amount.Positive() || amount.Minor > ledger.OrderMax:
		return "amount: it must lie above nothing and within what an order can be"
	}
	c.Amount = amount
	if word := text("canceled"); word != "" {
		canceled, err := readAmount(word, currency)
		switch {
		case err != nil:
			return "canceled: " + err.Error()
		case canceled.Minor < 0 || canceled.Minor > amount.Minor:
			return "canceled: it must lie between nothing and the amount"
		}
		c.Canceled = &canceled
	}
	return ""
}

var grouped = regexp.MustCompile(`^\d{1,3}(,\d{3})+(\.\d+)?$`)

// readAmount reads a number, also one with commas after each three digits. One that a spreadsheet has written with an
// exponent may have lost digits.
func readAmount(text string, currency ledger.Currency) (ledger.Money, error) {
	if strings.ContainsAny(text, "eE") {
		return ledger.Money{}, errors.New("written with an exponent; write it out")
	}
	if grouped.MatchString(text) {
		text = strings.ReplaceAll(text, ",", "")
	}
	return ledger.ParseMoney(text, currency)
}

func readPaymentKey(c *Claim, text string) error {
	if !pgclient.ValidPaymentKey(text) {
		return errors.New("no payment key has this form")
	}
	c.PaymentKey = text
	return nil
}

func readOrderID(c *Claim, text string) error {
	if !pgclient.ValidOrderID(text) {
		return errors.New("6 to 64 letters, digits, '_', '-' and '=' make an order id")
	}
	c.OrderID = text
	return nil
}

func readCredits(c *Claim, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > ledger.OrderMax {
		return errors.New("not a number of credits")
	}
	c.Credits = n
	return nil
}

// readTime reads an instant, or a Korean time without a zone.
func readTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{time.DateTime, "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, ledger.Seoul()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("a time looks like 2006-01-02 15:04:05, Korean, or like 2006-01-02T15:04:05+09:00")
}

func readText(text string, most int) (string, error) {
	switch {
	case utf8.RuneCountInString(text) > most:
		return "", fmt.Errorf("more than %d characters", most)
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", errors.New("a control character")
	}
	return text, nil
}
