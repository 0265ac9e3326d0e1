package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"daesa/ledger"
)

// unknown stands in a sentence for what only a running program knows.
const unknown = "\x00"

// sources of one package, without its tests.
type code struct {
	name   string
	files  map[string]*ast.File
	consts map[string]ast.Expr
}

func read(t *testing.T, folder string) code {
	t.Helper()
	c := code{name: filepath.Base(folder), files: map[string]*ast.File{}, consts: map[string]ast.Expr{}}
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no code in %s: %v", folder, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c.files[filepath.Base(path)] = file
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					c.consts[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	return c
}

var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// says is the text of an expression, as far as it is written in the code.
func (c code) says(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if said, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return said
		}
	case *ast.Ident:
		if value, ok := c.consts[e.Name].(*ast.BasicLit); ok && value.Kind == token.STRING {
			return c.says(value)
		}
	case *ast.ParenExpr:
		return c.says(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return c.says(e.X) + c.says(e.Y)
		}
	case *ast.CallExpr:
		if nameOf(e.Fun) == "Sprintf" {
			return verb.ReplaceAllString(c.says(e.Args[0]), unknown)
		}
	}
	return unknown
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// sentencesOf collects what the package says of a mismatch, of a day that could not be seen whole, of what came of a question
// and of money that cannot be read: what is written to a field or a variable of such a name, handed to a function that opens
// a mismatch, or returned by one that finds a problem.
func (c code) sentencesOf() (whole, begun, added []string) {
	fields := []string{"Detail", "detail", "answer", "text", "note"}
	handed := map[string]int{"breaks": -1, "finding": -1, "changed": -1, "report": 2, "inconsistent": 0}
	told := func(into *[]string, e ast.Expr) {
		if s := c.says(e); strings.ContainsFunc(s, unicode.IsLetter) {
			*into = append(*into, s)
		}
	}
	for name, value := range c.consts {
		if strings.HasPrefix(name, "detail") {
			told(&begun, value)
		}
	}
	for file, parsed := range c.files {
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if slices.Contains(fields, nameOf(n.Key)) {
					told(&whole, n.Value)
				}
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					switch {
					case !slices.Contains(fields, nameOf(to)) || len(n.Lhs) != len(n.Rhs):
					case n.Tok == token.ADD_ASSIGN:
						told(&added, n.Rhs[i])
					default:
						told(&whole, n.Rhs[i])
					}
				}
			case *ast.CallExpr:
				if at, ok := handed[nameOf(n.Fun)]; ok {
					if at < 0 {
						at += len(n.Args)
					}
					if at >= 0 && at < len(n.Args) {
						told(&whole, n.Args[at])
					}
				}
				if nameOf(n.Fun) == "append" && nameOf(n.Args[0]) == "reasons" {
					told(&whole, n.Args[1])
				}
			case *ast.FuncDecl:
				if returnsSentences(c.name, file, n) {
					eachReturned(n, func(e ast.Expr) { told(&whole, e) })
				}
			}
			return true
		})
	}
	return whole, begun, added
}

// returnsSentences reports whether the function says a problem, the note of what is pending, or whose something is.
func returnsSentences(name, file string, f *ast.FuncDecl) bool {
	switch {
	case name == "pgclient" && file == "payment.go" && strings.HasSuffix(strings.ToLower(f.Name.Name), "contradict"),
		name == "pgclient" && file == "payment.go" && strings.HasSuffix(strings.ToLower(f.Name.Name), "contradicts"),
		name == "pgclient" && f.Name.Name == "contradiction", file == "identity.go" && f.Name.Name == "note",
		file == "whose.go" && f.Name.Name == "String":
		return true
	case f.Type.Results == nil:
		return false
	}
	return slices.ContainsFunc(f.Type.Results.List, func(r *ast.Field) bool {
		return slices.ContainsFunc(r.Names, func(n *ast.Ident) bool { return n.Name == "problem" })
	})
}

func eachReturned(f *ast.FuncDecl, do func(ast.Expr)) {
	ast.Inspect(f, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			do(r.Results[len(r.Results)-1])
		}
		return true
	})
}

// knows tells whether the phrases have a sentence of the code. What only a running program knows is in a hole.
type knows []*regexp.Regexp

func phrasesKnow() knows {
	var all knows
	for _, p := range koreanPhrases {
		rest, shape := p.english, `\A(?s:`
		for at := holeMark.FindStringSubmatchIndex(rest); at != nil; at = holeMark.FindStringSubmatchIndex(rest) {
			hole := unknown
			if kind := rest[at[2]:at[3]]; kind == "field" || kind == "word" {
				hole = `(?:` + unknown + `|` + holeShapes[kind] + `)`
			}
			shape, rest = shape+regexp.QuoteMeta(rest[:at[0]])+hole, rest[at[1]:]
		}
		all = append(all, regexp.MustCompile(shape+regexp.QuoteMeta(rest)+`)\z`))
	}
	return all
}

func (k knows) whole(sentence string) bool {
	return slices.ContainsFunc(k, func(r *regexp.Regexp) bool { return r.MatchString(sentence) })
}

// part is whether a phrase begins, or ends, with the text.
func part(text string, has func(s, with string) bool) bool {
	return slices.ContainsFunc(koreanPhrases, func(p phrase) bool {
		return has(holeMark.ReplaceAllString(p.english, unknown), text)
	})
}

// TestKorean_HasEverySentence that the code of the reconciliation, of the books and of the gateway's client can bring into a
// report: it is collected from the code, so that a new one is missed.
func TestKorean_HasEverySentence(t *testing.T) {
	t.Parallel()
	known := phrasesKnow()
	for folder, atLeast := range map[string]int{"..": 50, "../../ledger": 15, "../../pgclient": 20} {
		whole, begun, added := read(t, folder).sentencesOf()
		if len(whole) < atLeast {
			t.Errorf("%s: only %d sentences were found, want %d or more: does it write them elsewhere now?", folder, len(whole), atLeast)
		}
		for _, s := range whole {
			if !known.whole(s) && !notInReports(s) {
				t.Errorf("%s: %q has no Korean sentence in phrases.go", folder, s)
			}
		}
		for _, s := range begun {
			if !part(s, strings.HasPrefix) {
				t.Errorf("%s: nothing in phrases.go begins with %q", folder, s)
			}
		}
		for _, s := range added {
			if !part(s, strings.HasSuffix) && !notInReports(s) {
				t.Errorf("%s: nothing in phrases.go ends with %q", folder, s)
			}
		}
	}
}

// notInReports are sentences of the gateway's client about our own calls and of its errors, which are carried over as they are.
func notInReports(sentence string) bool {
	return slices.Contains([]string{
		"the request could not be built", "not a payment object", "not a list of transactions", "the list needs a window and 1 to 5,000 rows",
		"the order id has no valid form", "the payment key has no valid form", "gateway: " + unknown, " (status " + unknown,
		unknown + ", content type " + unknown,
	}, sentence)
}

var quoted = regexp.MustCompile(`'((?:[^']|'')*)'`)

// TestKorean_HasEveryPartOfTheStatements: what statements put together of our own words has its phrases, too: the timeline,
// and what is said of the journal.
func TestKorean_HasEveryPartOfTheStatements(t *testing.T) {
	t.Parallel()
	var parts []string
	for _, p := range koreanPhrases {
		for _, s := range holeMark.Split(p.english, -1) {
			parts = append(parts, strings.TrimSpace(s))
		}
	}
	for folder, files := range map[string][]string{".": {"timeline.go", "states.go"}, "..": {"injournal.go"}} {
		c, found := read(t, folder), 0
		for _, file := range files {
			ast.Inspect(c.files[file], func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				sql := c.says(e)
				for _, s := range quoted.FindAllStringSubmatch(sql, -1) {
					word := strings.TrimSpace(s[1])
					if word == s[1] && !strings.Contains(word, " ") || word == "" || word == ";" || strings.HasPrefix(word, "YYYY") || strings.HasSuffix(word, " microseconds") {
						continue
					}
					found++
					if !slices.Contains(parts, word) {
						t.Errorf("%s: %q is in no phrase", file, s[1])
					}
				}
				return sql == unknown
			})
		}
		if found < 5 {
			t.Errorf("%v: only %d words of ours were found", files, found)
		}
	}
}

// TestKorean_HasEveryReason of a notice, and every word of the store.
func TestKorean_HasEveryReason(t *testing.T) {
	t.Parallel()
	for folder, in := range map[string]struct {
		kind, key string
		words     map[string]string
		atLeast   int
	}{
		"../../webhook": {"", "reason", koreanReasons, 10}, "../../pgclient": {"Reason", "", koreanReasons, 10},
		"../../checkout/store": {"Word", "", koreanStore, 4},
	} {
		c, found := read(t, folder), 0
		has := func(e ast.Expr) {
			if word := c.says(e); word != unknown && word != "" {
				found++
				if in.words[word] == "" {
					t.Errorf("%s: %q has no Korean word in phrases.go", folder, word)
				}
			}
		}
		for _, file := range c.files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if in.key != "" && nameOf(n.Key) == in.key {
						has(n.Value)
					}
				case *ast.ValueSpec:
					if in.kind != "" && n.Type != nil && nameOf(n.Type) == in.kind && len(n.Values) == 1 {
						has(n.Values[0])
					}
				case *ast.FuncDecl:
					if in.key != "" && n.Name.Name == "unread" {
						eachReturned(n, has)
					}
				}
				return true
			})
		}
		if found < in.atLeast {
			t.Errorf("%s: only %d words were found", folder, found)
		}
	}
}

// samples are what may stand in the holes of a phrase.
var samples = map[string]string{
	"n": "3", "money": "-726.24 USD", "moneys": "12000 KRW and 0.05 USD", "sum": "nothing KRW", "at": "2026-11-30 12:00:01 KST", "day": "2026-11-30",
	"hash": "0123456789ab", "key": "pay_0001==", "quoted": `"order \"1\", x"`, "field": "totalAmount", "text": "한글; (a) [b] {c}", "who": "os:kim",
	"word": "capture", "store": "late", "sentence": "no time", "answer": "gateway: timeout",
}

// TestPhrases_AreFound: each phrase is found with whatever may be in its holes, before any other, and loses nothing of it.
func TestPhrases_AreFound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range koreanPhrases {
		if seen[p.english] {
			t.Errorf("%q is there twice", p.english)
		}
		seen[p.english] = true
		here, there := holeMark.FindAllString(p.english, -1), holeMark.FindAllString(p.other, -1)
		for _, mark := range here {
			if !slices.Contains(there, mark) && mark != "{word2}" {
				t.Errorf("%q: %s is lost", p.english, mark)
			}
		}
		fill := func(text string, korean bool) string {
			return holeMark.ReplaceAllStringFunc(text, func(mark string) string {
				kind := holeMark.FindStringSubmatch(mark)[1]
				sample, ok := samples[kind]
				if !ok {
					t.Fatalf("%q: %s has no sample", p.english, mark)
				}
				if korean {
					if sample, ok = fillHole(kind, sample); !ok {
						t.Fatalf("%q: the sample of %s is not known", p.english, mark)
					}
				}
				return sample
			})
		}
		want := fill(p.other, true)
		if got := Korean.sentences(Sentences{Text: fill(p.english, false)}); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", p.english, got, want)
		}
		if !strings.ContainsFunc(p.other, func(r rune) bool { return unicode.Is(unicode.Hangul, r) }) && !strings.HasPrefix(p.english, "{field}") {
			t.Errorf("%q is not Korean: %s", p.english, p.other)
		}
	}
}

// TestSentences_InKorean holds sentences as they are kept against what finance reads, what is not ours among them.
func TestSentences_InKorean(t *testing.T) {
	t.Parallel()
	fraction := func(number string, c ledger.Currency) string {
		_, err := ledger.ParseMoney(number, c)
		return err.Error()
	}
	for _, c := range []struct{ name, text, typed, source, want string }{
		{"money", "the cancel is 5500 KRW at the gateway and 50.05 USD here", "", "", "취소 금액이 다름: PG 5500 KRW, 장부 50.05 USD"},
		{"a pending cancel", "3 of 7, next 12-01 04:04", "", "", "7회 중 3회차, 다음 예상 12-01 04:04"},
		{"a claim", "cancel_claimed", "", "", "통지된 취소 확인"},
		{
			"whose", `the cancel is of payment pay_1, order "order-1", at the gateway and of payment pay_2, order "", here`, "", "",
			`취소의 결제·주문이 다름: PG 결제 pay_1 주문 "order-1", 장부 결제 pay_2 주문 ""`,
		},
		{"whose, cut off", `the cancel is of payment pay_1, order "order-1", at the gateway and of payment pa`, "", "", `the cancel is of payment pay_1, order "order-1", at the gateway and of payment pa`},
		{
			"two reasons", "the gateway's list was read up to 2026-12-01 00:05:00 KST only; the day needs it up to its end and the list's lag; " +
				"the gateway's list was read from 2026-11-30 03:00:00 KST on only; the day begins earlier", "", "",
			"PG 거래목록을 2026-12-01 00:05:00 KST까지만 조회함; 영업일 종료 후 목록지연까지 조회해야 함; PG 거래목록을 2026-11-30 03:00:00 KST부터만 조회함; 영업일은 그 전에 시작함",
		},
		{"the gateway's error", "the last read of the gateway's list failed: gateway: timeout; no time", "", "", "PG 거래목록의 마지막 조회가 실패함: gateway: timeout; no time"},
		{
			"the journal", "this cancel and its transaction in the journal differ: our books have 12000 KRW at 2026-11-30T03:01:01.000000Z recorded 2026-11-30T03:01:02.000000Z " +
				"of payment pay_1 of order order-1, the journal has nothing KRW at 2026-11-30T03:01:01.000000Z recorded 2026-11-30T03:01:02.000000Z of payment pay_1 of order order-1, in entries that no cancel has",
			"", "",
			"취소의 장부와 분개가 다름: 장부 12000 KRW 시각 2026-11-30T03:01:01.000000Z 기록시각 2026-11-30T03:01:02.000000Z 결제 pay_1 주문 order-1, " +
				"분개 금액 없음 KRW 시각 2026-11-30T03:01:01.000000Z 기록시각 2026-11-30T03:01:02.000000Z 결제 pay_1 주문 order-1, 취소에 맞지 않는 분개 구성",
		},
		{"only the journal", "this deposit_reversal and its transaction in the journal differ: our books have nothing, the journal has 1 KRW at 2026-11-30T03:01:01.000000Z of payment p", "", "", "입금 취소의 장부와 분개가 다름: 장부 없음, 분개 1 KRW 시각 2026-11-30T03:01:01.000000Z 결제 p"},
		{"a signed day", "2026-11-30 was signed as 53fbf9a38104 and says  now: 2 transactions differ from what was signed, of 10 KRW and 0.05 USD", "", "", "2026-11-30 영업일이 서명 후 변경됨: 서명 당시 명세해시 53fbf9a38104, 현재 , 서명 내용과 다른 거래 2건(10 KRW, 0.05 USD)"},
		{"a fraction", "a row of the gateway's list cannot be held exactly: amount: " + fraction("1.5", ledger.KRW), "", "", `PG 거래목록의 행을 정확히 기록할 수 없음: amount: "1.5" KRW: 금액을 정확히 기록할 수 없음`},
		{"a currency", "cancel 2: cancelAmount: " + fraction("1", "EUR"), "", "", `2번째 취소: cancelAmount: 통화 "EUR": 금액을 정확히 기록할 수 없음`},
		{"no currency", "balanceAmount: " + fraction("1", ""), "", "", `balanceAmount: 통화 "": 금액을 정확히 기록할 수 없음`},
		{"a problem that is not known", "a row of the gateway's list cannot be held exactly: amount: NaN", "", "", "a row of the gateway's list cannot be held exactly: amount: NaN"},
		{"a state", "captured while our books say canceled", "", "", "PG 상태(승인)가 장부 상태(취소)와 맞지 않음"},
		{"a state that is not known", "captured while our books say odd", "", "", "captured while our books say odd"},
		{"a note", "mismatch 7; by os:kim; no time; attempt 1; no time", "attempt 1; no time", "mismatch", "불일치 7번; 처리자 os:kim; 시각 없음; attempt 1; no time"},
		{"a proposal", "mismatch 7; by api:office; assigned to os:lee; to be accepted; settled by phone", "settled by phone", "mismatch", "불일치 7번; 처리자 api:office; 담당자 os:lee; 해결 제안: 인정된 차이; settled by phone"},
		{"by itself", "mismatch 7; by system; auto", "", "mismatch", "불일치 7번; 처리자 시스템; 자동 종결"},
		{"a notice", "redelivery 2 of 7; answered 502; after 31 ms; timeout; closed after a crash", "", "notice", "7회 중 2회차 재전송; 응답 상태 502; 응답까지 31ms; 시간 초과; 서비스 중단 후 정리됨"},
		{"a notice, in a word that else says something else", "first delivery; canceled", "", "notice", "최초 전송; 호출 중단"},
		{"the gateway's word", "can_1; attempt 2; ALREADY_CANCELED_PAYMENT", "", "cancel_request", "can_1; 2회차 시도; ALREADY_CANCELED_PAYMENT"},
		{"an answer in our words", "3 times; absent: the gateway says DONE", "", "work", "3회; PG에 없음: PG 상태: DONE"},
		{"an answer in its words", "3 times; absent: gateway: timeout", "", "work", "3회; PG에 없음: gateway: timeout"},
		{"nothing of ours", "order-1", "", "", "order-1"},
		{"nothing", "", "", "", ""},
	} {
		if got := Korean.sentences(Sentences{Text: c.text, Typed: c.typed, Source: c.source}); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		if got := English.sentences(Sentences{Text: c.text, Typed: c.typed, Source: c.source}); got != c.text {
			t.Errorf("%s, in English: got %s, want %s", c.name, got, c.text)
		}
	}
	if kind := (Sentences{}).kind(); kind != TypeText {
		t.Errorf("sentences are of type %s, want text", kind)
	}
}
