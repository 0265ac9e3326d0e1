package browser_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"daesa/internal/people"
)

// So much is at risk that two people work it to its end; who may only look is offered nothing, and refused.
func TestMismatch_TwoPeopleResolve(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.spent("order-spent", 5_000_000)
	o.colleague("kim", people.RoleApprover)
	o.colleague("lee", people.RoleApprover)
	o.colleague("park", people.RoleViewer)
	kim, lee, park := browse(t, o.app.PagesURL(), "en"), browse(t, o.app.PagesURL(), "en"), browse(t, o.app.PagesURL(), "en")

	kim.signIn("kim")
	kim.follow("1 open mismatches", 200)
	kim.says("order-spent")
	kim.shot("list")
	kim.follow("1", 200)
	kim.says("open", "So much is at risk that a second person confirms")
	kim.follow("Acknowledge", 200)
	kim.fill("Add the note", "Note", "<b>asked the customer</b>")
	kim.follow("Add the note", 200)
	kim.says("acknowledged", "<b>asked the customer</b>")
	kim.do(chromedp.Click(chromedp.CSS(`input[name=as][value=accepted]`)))
	kim.fill("Propose", "Note", "the customer pays it back")
	kim.shot("proposing")
	kim.follow("Propose", 200)
	kim.says("person:kim proposes: accepted. the customer pays it back")
	kim.lacks("Confirm as proposed")

	park.signIn("park")
	park.open("/mismatches/1", 200)
	park.says("person:kim proposes")
	park.lacks("What to do", "Confirm as proposed")
	for _, step := range []string{"confirm", "note", "acknowledge"} {
		park.leads(403, chromedp.Func(func(context.Context, *chromedp.Target) error {
			return park.send("/mismatches/1/" + step) //nolint:contextcheck // a tab has its own
		}))
		park.says("Your roles do not allow this", "Nothing was changed.")
	}
	park.shot("refused")
	park.open("/accounts", 403)
	park.lacks("A new account")

	lee.signIn("lee")
	lee.open("/mismatches/1", 200)
	lee.fill("Confirm as proposed", "Note", "seen the receipt")
	lee.follow("Confirm as proposed", 200)
	lee.says("resolved (accepted)", "seen the receipt")
	lee.shot("resolved")
	lee.follow("Overview", 200)
	lee.says("No open mismatches.")
}

// send has the page send a form that it does not show.
func (b *tab) send(path string) error {
	return b.try(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
			const form = document.createElement("form");
			form.method = "post"; form.action = %q;
			const field = document.createElement("input");
			field.name = "revision"; field.value = "1";
			form.append(field); document.body.append(form); form.submit();
		})()`, path))(ctx, t)
		return err
	}))
}
