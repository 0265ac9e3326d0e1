package browser_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"daesa/internal/people"
)

const (
	docs       = "../../docs"
	pictureMax = 150 << 10
)

// The pictures of the guides are of the pages as they are, in both languages. Without -update they are artefacts only.
func TestGuides_Pictures(t *testing.T) {
	t.Parallel()
	if !*update && !artefacts() {
		t.Skip("TestTour opens the same pages; -update takes the pictures of the guides anew")
	}
	o := house(t)
	o.colleague("kim", people.RoleApprover)
	for _, language := range []string{"en", "ko"} {
		b := browse(t, o.app.PagesURL(), language)
		picture := func(name string, height int64) {
			b.picture(name+"."+language+".png", height)
		}
		b.signIn("kim")
		picture("overview", 1080)
		b.open("/days/2026-04-17", 200)
		picture("day", 900)
		b.open("/mismatches/2", 200)
		picture("mismatch", 980)
		b.open("/deliveries", 200)
		picture("deliveries", 560)
		b.open("/orders/order-0418-4", 200)
		picture("order", 860)
		gateway := browse(t, o.gateway, language)
		gateway.open("/__sim/", 200)
		gateway.picture("gateway."+language+".png", 760)
	}
}

// picture keeps the upper part of the page, for a guide.
func (b *tab) picture(name string, height int64) {
	b.Helper()
	b.do(chromedp.EmulateViewport(1080, height))
	path := filepath.Join(b.ArtifactDir(), name)
	if *update {
		path = filepath.Join(docs, "images", name)
	}
	raw := b.look(chromedp.CaptureScreenshot())
	whole, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		b.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, paletted(whole)); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, small.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
}

// paletted is a picture in the 256 colours that it has most of. Pages have few, and the shades of the letters' edges.
func paletted(whole image.Image) *image.Paletted {
	bounds, count := whole.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		r, g, b, _ := whole.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	var colors []color.RGBA
	for c := range count {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.RGBA) int { return count[b] - count[a] })
	palette, index := color.Palette{}, map[color.RGBA]uint8{}
	for _, c := range colors[:min(256, len(colors))] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			near, known := index[c]
			if !known {
				near = uint8(palette.Index(c))
				index[c] = near
			}
			small.SetColorIndex(x, y, near)
		}
	}
	return small
}

// Every picture that a text shows is there, is small and is described, and none is there for nothing.
func TestGuides_ShowPicturesThatAreThere(t *testing.T) {
	t.Parallel()
	texts, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(texts) == 0 {
		t.Fatalf("no texts in %s: %v", docs, err)
	}
	readmes, err := filepath.Glob("../../README*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, text := range append(texts, readmes...) {
		raw, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`!\[([^\]]*)\]\(([^)]+)\)`).FindAllStringSubmatch(string(raw), -1) {
			path := filepath.Join(filepath.Dir(text), found[2])
			shown[path] = true
			if info, err := os.Stat(path); err != nil || info.Size() > pictureMax {
				t.Errorf("%s shows %s: %v, of at most %d bytes", text, path, err, pictureMax)
			}
			if found[1] == "" {
				t.Errorf("%s does not say what is on %s", text, path)
			}
		}
	}
	pictures, err := filepath.Glob(filepath.Join(docs, "images", "*"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	for _, picture := range pictures {
		if !shown[picture] {
			t.Errorf("nothing shows %s", picture)
		}
	}
}

// Every guide has its other language, and what either refers to is there.
func TestGuides_InBothLanguages(t *testing.T) {
	t.Parallel()
	root := "../.."
	for _, name := range []string{"README", "docs/guide-finance", "docs/guide-oncall"} {
		for _, text := range []string{name + ".md", name + ".ko.md"} {
			raw, err := os.ReadFile(filepath.Join(root, text))
			if err != nil {
				t.Error(err)
				continue
			}
			other := filepath.Base(map[bool]string{true: name + ".ko.md", false: name + ".md"}[text == name+".md"])
			if !bytes.Contains(raw, fmt.Appendf(nil, "(%s)", other)) {
				t.Errorf("%s does not lead to %s", text, other)
			}
			for _, found := range regexp.MustCompile(`\]\(([^):#]+)[^)]*\)`).FindAllStringSubmatch(string(raw), -1) {
				if _, err := os.Stat(filepath.Join(root, filepath.Dir(text), found[1])); err != nil && !regexp.MustCompile(`^https?$`).MatchString(found[1]) {
					t.Errorf("%s refers to %s: %v", text, found[1], err)
				}
			}
		}
	}
}
