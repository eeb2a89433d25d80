package processors

import "github.com/tributary-io/tributary/serde"

// dueAnswers knows of an inner join by foreign key which left rows are sure to get another response: those that have asked for one, and
// haven't had it. It is memory of a task, shared by the join's nodes on the left side, and as large as what is on its way. After a restart
// nothing is known to be due.
type dueAnswers[K any] struct {
	keys serde.Serde[K]
	key  []byte // scratch
	rows map[string]struct{}
}

// dueAnswers is nil for a left join, which always answers, and for a runtime that nodes share nothing in.
func (j *ForeignKeyJoin[K, L, KR, R, O]) dueAnswers(rt Runtime) *dueAnswers[K] {
	hooks, ok := rt.(CommitHooks)
	if !ok || j.Left {
		return nil
	}
	v, _ := hooks.Shared("due/"+j.SubscriptionTopic, func() any {
		return &dueAnswers[K]{keys: serde.Bind(j.LeftKey, j.SubscriptionTopic+"-pk", true), rows: map[string]struct{}{}}
	})
	return v.(*dueAnswers[K])
}

func (d *dueAnswers[K]) encode(key K) (err error) {
	if d.key, err = d.keys.Append(d.key[:0], key); err != nil {
		return codecError(err, "the left key can't be encoded")
	}
	return nil
}

// asked notes the last message that a row has sent.
func (d *dueAnswers[K]) asked(key K, what Instruction) error {
	if d == nil || what == SubscribeAnswerIfFound || what == Unsubscribe {
		return d.none(key)
	}
	if err := d.encode(key); err != nil {
		return err
	}
	d.rows[string(d.key)] = struct{}{}
	return nil
}

// is tells whether a response to the row as it is now is sure to come.
func (d *dueAnswers[K]) is(key K) (bool, error) {
	if d == nil {
		return false, nil
	}
	if err := d.encode(key); err != nil {
		return false, err
	}
	_, due := d.rows[string(d.key)]
	return due, nil
}

// none notes that none is: it has come, or the row has changed and needn't be answered.
func (d *dueAnswers[K]) none(key K) error {
	if d == nil || len(d.rows) == 0 {
		return nil
	}
	if err := d.encode(key); err != nil {
		return err
	}
	delete(d.rows, string(d.key))
	return nil
}
