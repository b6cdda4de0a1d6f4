package api

import (
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/problem"
)

// contactPage is the default number of contacts on a page. It is large so that clients that ignore paging see small
// groups whole.
const contactPage = 100

// groups lists the contact groups with their counts.
func groups(c *call) error {
	all, err := c.api.Contacts.Groups(c.ctx, c.caller.Tenant)
	if err != nil {
		return err
	}
	w := c.success("Contact groups fetched successfully")
	w.List("data")
	for _, g := range all {
		w.Object("")
		w.group(g)
		w.End()
	}
	w.End()
	w.End()
	return nil
}

// group writes the members of a contact group.
func (w *writer) group(g contacts.Group) {
	w.Text("id", g.ID)
	w.Text("name", g.Name)
	w.Text("group_icon", g.Icon)
	w.Integer("contacts_count", g.Contacts)
	w.Time("created_at", g.CreatedAt)
}

// contact writes the members of a contact.
func (w *writer) contact(m contacts.Contact) {
	w.Text("id", m.ID)
	w.Text("first_name", m.FirstName)
	w.Text("last_name", m.LastName)
	w.Text("phone_number", m.MSISDN.International())
	w.Text("email", m.Email)
	w.Text("contact_group_id", m.GroupID)
	w.Time("created_at", m.CreatedAt)
}

func addGroup(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	name, icon, who := f.short("name", true, textMax), f.label("group_icon"), c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	g, replayed, err := c.api.Contacts.AddGroup(c.ctx, who, name, icon)
	c.replayed(replayed)
	return c.answerGroup("Contact group created successfully")(g, err)
}

// answerGroup returns a function that writes a contact group, or returns the error.
func (c *call) answerGroup(message string) func(contacts.Group, error) error {
	return func(g contacts.Group, err error) error {
		if err != nil {
			return err
		}
		w := c.success(message)
		w.Object("data")
		w.group(g)
		w.End()
		w.End()
		return nil
	}
}

// groupID returns the id of the group in the path.
func (f *form) groupID(name string) (string, error) {
	return f.id(name, problem.New(problem.NotFound, "group_not_found", "Contact group not found"))
}

// contactID returns the id of the contact in the path.
func (f *form) contactID() (string, error) {
	return f.id("id", problem.New(problem.NotFound, "contact_not_found", "Contact not found"))
}

func updateGroup(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	id, unknown := f.groupID("id")
	name, icon := f.short("name", true, textMax), f.label("group_icon")
	if err := f.err(); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	return c.answerGroup("Contact group updated successfully")(c.api.Contacts.UpdateGroup(c.ctx, c.caller.Tenant, id, name, icon))
}

func deleteGroup(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	id, err := f.groupID("groupId")
	if bad := f.err(); bad != nil {
		return bad
	}
	if err == nil {
		err = c.api.Contacts.DeleteGroup(c.ctx, c.caller.Tenant, id)
	}
	return c.gone("Contact group deleted successfully", err)
}

// gone writes the response to a deletion.
func (c *call) gone(message string, err error) error {
	if err != nil {
		return err
	}
	w := c.success(message)
	w.Null("data")
	w.End()
	return nil
}

// listContacts returns a page of the contacts of a group.
func listContacts(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	id, unknown := f.groupID("groupId")
	number, size := f.number("page", 1, 1, maxPage), f.number("page_size", contactPage, 1, maxPageSize)
	if err := f.err(); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	all, total, err := c.api.Contacts.Contacts(c.ctx, c.caller.Tenant, id, int64(number), int64(size))
	if err != nil {
		return err
	}
	w := c.success("Contacts fetched successfully")
	w.List("data")
	for _, m := range all {
		w.Object("")
		w.contact(m)
		w.End()
	}
	w.End()
	c.pages(number, size, contactPage, total, len(all))
	w.End()
	return nil
}

// newContact reads the fields of a contact. The domain parses the number.
func (f *form) newContact(needNumber bool) contacts.NewContact {
	n := contacts.NewContact{FirstName: f.short("first_name", false, textMax), LastName: f.short("last_name", false, textMax), Email: f.line("email", false, contacts.MaxEmail)}
	if _, there := f.string("phone_number", false); there || needNumber {
		n.Phone = string(f.phone("phone_number"))
	}
	return n
}

func addContact(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	group, n, who := f.ours("contact_group_id"), f.newContact(true), c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	m, replayed, err := c.api.Contacts.AddContact(c.ctx, who, group, n)
	c.replayed(replayed)
	return c.known("Contact added successfully")(m, err)
}

// known returns a function that writes a contact, or returns the error.
func (c *call) known(message string) func(contacts.Contact, error) error {
	return func(m contacts.Contact, err error) error {
		if err != nil {
			return blame(err, "phone_number", "contact_exists")
		}
		w := c.success(message)
		w.Object("data")
		w.contact(m)
		w.End()
		w.End()
		return nil
	}
}

// addContacts adds many contacts at once. It adds the valid ones, and the response lists the invalid ones by row.
func addContacts(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	group, who := f.ours("contact_group_id"), c.asker(f)
	rows := f.objects("contacts", contacts.MaxBulk)
	list := make([]contacts.NewContact, len(rows))
	for i, row := range rows {
		list[i] = contacts.NewContact{Phone: row.plain("phone_number"), FirstName: row.plain("first_name"), LastName: row.plain("last_name"), Email: row.plain("email")}
	}
	if err := f.err(); err != nil {
		return err
	}
	added, replayed, err := c.api.Contacts.AddContacts(c.ctx, who, group, list)
	if err != nil {
		return err
	}
	c.replayed(replayed)
	w := c.success("Contacts added successfully")
	w.Object("data")
	w.Integer("added", int64(added.New))
	w.Integer("duplicates", int64(added.Duplicates))
	w.List("invalid")
	for _, b := range added.Bad {
		w.Object("")
		w.Integer("row", int64(b.Row))
		w.Text("error", b.Text)
		w.End()
	}
	w.End()
	w.End()
	w.End()
	return nil
}

func updateContact(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	id, unknown := f.contactID()
	n := f.newContact(false)
	if err := f.err(); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	return c.known("Contact updated successfully")(c.api.Contacts.UpdateContact(c.ctx, c.caller.Tenant, id, n))
}

func deleteContact(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	id, err := f.contactID()
	if bad := f.err(); bad != nil {
		return bad
	}
	if err == nil {
		err = c.api.Contacts.DeleteContact(c.ctx, c.caller.Tenant, id)
	}
	return c.gone("Contact deleted successfully", err)
}
