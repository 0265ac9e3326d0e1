package tosssim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// document is a JSON object that keeps the order and the exact bytes of its members. A payment *is* its document: seeded
// objects keep members and number spellings that no Go struct would survive, and a later cancel changes only what it must.
type document []member

type member struct {
	name  string
	value json.RawMessage
}

// object builds a document from alternating names and values.
func object(pairs ...any) document {
	doc := make(document, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		doc = append(doc, member{name: name, value: encode(pairs[i+1])})
	}
	return doc
}

// parseDocument reads exactly one JSON object.
func parseDocument(raw []byte) (document, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	doc := document{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("read member name: %w", err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("read member %v: %w", name, err)
		}
		text, _ := name.(string)
		doc = append(doc, member{name: text, value: value})
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("read end of object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more after the JSON object")
	}
	return doc, nil
}

// get returns the value of a member, or nil when there is none.
func (d document) get(name string) json.RawMessage {
	for _, m := range d {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text returns a string member, or "" when it is absent, null or something else.
func (d document) text(name string) string {
	var text string
	if json.Unmarshal(d.get(name), &text) != nil {
		return ""
	}
	return text
}

// child returns an object member, or nil when it is absent, null or something else.
func (d document) child(name string) document {
	child, err := parseDocument(d.get(name))
	if err != nil {
		return nil
	}
	return child
}

// children returns an array of objects; what is not an object is left out.
func (d document) children(name string) []document {
	var values []json.RawMessage
	if json.Unmarshal(d.get(name), &values) != nil {
		return nil
	}
	var children []document
	for _, value := range values {
		if child, err := parseDocument(value); err == nil {
			children = append(children, child)
		}
	}
	return children
}

// with returns a copy that has this member, in its old place or at the end.
func (d document) with(name string, value any) document {
	changed := append(document{}, d...)
	for i := range changed {
		if changed[i].name == name {
			changed[i].value = encode(value)
			return changed
		}
	}
	return append(changed, member{name: name, value: encode(value)})
}

// bytes renders the document as the gateway would send it.
func (d document) bytes() []byte {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range d {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(encode(m.name))
		out.WriteByte(':')
		out.Write(m.value)
	}
	out.WriteByte('}')
	return out.Bytes()
}

// encode renders a value without escaping HTML characters. A document, raw JSON and an array of documents keep their bytes.
func encode(value any) json.RawMessage {
	switch v := value.(type) {
	case document:
		return v.bytes()
	case json.RawMessage:
		return v
	case []document:
		parts := make([][]byte, len(v))
		for i, child := range v {
			parts[i] = child.bytes()
		}
		return slicesOf(parts)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("tosssim: encode %T: %v", value, err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// slicesOf joins rendered values to a JSON array.
func slicesOf(parts [][]byte) json.RawMessage {
	out := append([]byte{'['}, bytes.Join(parts, []byte(","))...)
	return append(out, ']')
}
