package report

import (
	"regexp"
	"strings"
	"sync"

	"daesa/ledger"
)

// Sentences are text that begins with sentences of our own, as they are kept: in English, one after the other with a semicolon
// between. In another language each sentence that it has is written in that one; every other stays as it is, whole. What
// stands in a sentence (amounts, keys, times, the gateway's words) is carried over.
type Sentences struct {
	Text   string // all of it
	Typed  string // what a person typed, at its end: it is nobody's to translate; "" = nothing
	Source string // of a timeline: one whose reasons have words of their own; "" elsewhere
}

func (Sentences) kind() Type { return TypeText }

// String is all of it in our own words.
func (s Sentences) String() string { return s.Text }

// sentences is a cell of sentences of our own, nothing when it is empty.
func sentences[T ~string](s T) Cell {
	if s == "" {
		return nil
	}
	return Sentences{Text: string(s)}
}

const (
	// between stands between the sentences of a text, and within a few of them.
	between = "; "
	// piecesMost is how many pieces between semicolons one sentence may have.
	piecesMost = 4
)

// sentences writes the text in the language.
func (l Language) sentences(s Sentences) string {
	if l != Korean {
		return s.Text
	}
	ours, ok := strings.CutSuffix(s.Text, s.Typed)
	if !ok {
		return s.Text
	}
	pieces, told := strings.Split(ours, between), []string(nil)
	for len(pieces) > 0 {
		n, sentence := first(s.Source, pieces)
		told, pieces = append(told, sentence), pieces[n:]
	}
	return strings.Join(told, between) + s.Typed
}

// first is the sentence that the pieces begin with, of as many of them as make one, and of how many it is made. Where they
// begin with none that is known, it is the first piece as it is.
func first(source string, pieces []string) (n int, sentence string) {
	for n = min(piecesMost, len(pieces)); n > 0; n-- {
		if sentence, ok := inKorean(source, strings.Join(pieces[:n], between)); ok {
			return n, sentence
		}
	}
	return 1, pieces[0]
}

// inKorean is one sentence in Korean, if it is known.
func inKorean(source, sentence string) (korean string, ok bool) {
	if source == sourceNotice {
		if korean, ok = koreanReasons[sentence]; ok {
			return korean, true
		}
	}
	if korean, ok = koreanWords[sentence]; ok {
		return korean, true
	}
	for _, p := range koreanPatterns() {
		if korean, ok = p.fill(sentence); ok {
			return korean, true
		}
	}
	return "", false
}

// phrase is a sentence of ours, and what it is in another language. Its holes are in braces, named by what is in them
// ([holeShapes]) and numbered where one name comes twice: {money1}. Both languages have the same holes, in whichever order.
type phrase struct{ english, other string }

// holeShapes are the names of holes, and what may stand in each.
//
//nolint:gochecknoglobals // never changed
var holeShapes = map[string]string{
	"n":        `\d+`,
	"money":    `-?[\d.]+ [A-Z]*`,
	"moneys":   `-?[\d.]+ [A-Z]+(?: and -?[\d.]+ [A-Z]+)+`,
	"sum":      `(?:-?\d+|nothing)(?: [A-Z]+)?`, // of the journal
	"at":       `\d[\d:.TZ -]*\d(?:Z| KST)?`,
	"day":      `\d{4}-\d\d-\d\d`,
	"hash":     `[0-9a-f]*`,
	"key":      `[^\s;,]*`,
	"quoted":   `"(?:[^"\\]|\\.)*"`,
	"field":    `amount|vat|[a-zA-Z]+Amount`, // of the gateway's objects
	"text":     `.*`,
	"who":      `[^;]+`,
	"word":     `[a-z_]+`, // of koreanWords
	"store":    `[a-z_]+`, // of koreanStore
	"sentence": `.+`,      // of ours
	"answer":   `.*`,      // the gateway's words, or a sentence of ours
}

// fillHole writes what stands in a hole, if that is known: half of a sentence is never translated. What is not in our
// words is carried over.
func fillHole(kind, with string) (string, bool) {
	switch kind {
	case "moneys":
		return strings.ReplaceAll(with, " and ", ", "), true
	case "sum":
		return strings.Replace(with, "nothing", "금액 없음", 1), true
	case "who":
		if ledger.Actor(with) == ledger.System {
			return "시스템", true
		}
	case "word":
		said, ok := koreanWords[with]
		return said, ok
	case "store":
		said, ok := koreanStore[with]
		return said, ok
	case "sentence":
		return inKorean("", with)
	case "answer":
		if said, ok := inKorean("", with); ok {
			return said, true
		}
	}
	return with, true
}

// pattern is a phrase that is ready to be looked for.
type pattern struct {
	match *regexp.Regexp
	holes map[string]string // the name of each without its number
	other string
}

// koreanPatterns are the phrases, made ready once.
//
//nolint:gochecknoglobals // made once, never changed
var koreanPatterns = sync.OnceValue(func() []pattern {
	patterns := make([]pattern, 0, len(koreanPhrases))
	for _, p := range koreanPhrases {
		patterns = append(patterns, p.compile())
	}
	return patterns
})

var holeMark = regexp.MustCompile(`\{([a-z]+)(\d?)\}`)

// compile makes the phrase ready.
func (p phrase) compile() pattern {
	made, rest, shape := pattern{other: p.other, holes: map[string]string{}}, p.english, strings.Builder{}
	for at := holeMark.FindStringSubmatchIndex(rest); at != nil; at = holeMark.FindStringSubmatchIndex(rest) {
		name, kind := rest[at[2]:at[5]], rest[at[2]:at[3]]
		shape.WriteString(regexp.QuoteMeta(rest[:at[0]]) + `(?P<` + name + `>` + holeShapes[kind] + `)`)
		made.holes[name], rest = kind, rest[at[1]:]
	}
	made.match = regexp.MustCompile(`(?s)\A` + shape.String() + regexp.QuoteMeta(rest) + `\z`)
	return made
}

// fill writes a sentence in the other language, if it is this one and everything in its holes is known.
func (p pattern) fill(sentence string) (other string, ok bool) {
	found := p.match.FindStringSubmatch(sentence)
	if found == nil {
		return "", false
	}
	in := make(map[string]string, len(found))
	for i, name := range p.match.SubexpNames() {
		if i == 0 {
			continue
		}
		if in[name], ok = fillHole(p.holes[name], found[i]); !ok {
			return "", false
		}
	}
	return holeMark.ReplaceAllStringFunc(p.other, func(mark string) string { return in[strings.Trim(mark, "{}")] }), true
}
