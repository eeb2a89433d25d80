package processors

import "github.com/tributary-io/tributary/serde"

// dueAnswers knows of an inner join by foreign key which left rows are sure to get another response: those that have asked for one, and
// haven't had it; and of which the last update was left out, so that none has asked for it. It is memory of a task, shared by the join's nodes on the
// left side. After a restart nothing is known, nor of more than dueLimit rows: what isn't known makes the join ask again, which costs a message and
// gives the result that the rows have by then.
type dueAnswers[K any] struct {
	keys serde.Serde[K]
	key  []byte // scratch
	rows map[string]rowVersion
	// unasked are rows whose foreign key couldn't be found: an error handler has left the update out, and the result stays as it was.
	unasked map[string]bool
}

// dueLimit is how many rows are known of at most, of each kind: some megabytes.
const dueLimit = 10_000

// rowVersion tells of which version of a row a message is.
type rowVersion struct {
	hash [16]byte
	null bool
}

// dueAnswers is nil for a left join, which always answers, and for a runtime that nodes share nothing in.
func (j *ForeignKeyJoin[K, L, KR, R, O]) dueAnswers(rt Runtime) *dueAnswers[K] {
	hooks, ok := rt.(CommitHooks)
	if !ok || j.Left {
		return nil
	}
	v, _ := hooks.Shared("due/"+j.SubscriptionTopic, func() any {
		return &dueAnswers[K]{keys: bindToWrite(rt, j.LeftKey, j.SubscriptionTopic+"-pk", true), rows: map[string]rowVersion{}, unasked: map[string]bool{}}
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
func (d *dueAnswers[K]) asked(s *Subscription[K]) error {
	if d == nil || s.Instruction == SubscribeAnswerIfFound || s.Instruction == Unsubscribe {
		return d.none(s.Key)
	}
	if err := d.encode(s.Key); err != nil {
		return err
	}
	delete(d.unasked, string(d.key))
	makeRoom(d.rows, d.key)
	d.rows[string(d.key)] = rowVersion{s.Hash, s.HashNull}
	return nil
}

// left notes that a row has changed and sent nothing, since its foreign key couldn't be found.
func (d *dueAnswers[K]) left(key K) error {
	if d == nil {
		return nil
	}
	if err := d.encode(key); err != nil {
		return err
	}
	makeRoom(d.unasked, d.key)
	d.unasked[string(d.key)] = true
	return nil
}

// makeRoom forgets all rows if they are as many as may be known and the key is one more.
func makeRoom[V any](known map[string]V, key []byte) {
	if _, has := known[string(key)]; !has && len(known) == dueLimit {
		clear(known)
	}
}

// came notes that a response has come. It may be the one that was due although the row is another one by now: a table that sends its updates at
// the commit shows them before.
func (d *dueAnswers[K]) came(key K, version rowVersion) error {
	if d == nil || len(d.rows) == 0 {
		return nil
	}
	if err := d.encode(key); err != nil {
		return err
	}
	if d.rows[string(d.key)] == version {
		delete(d.rows, string(d.key))
	}
	return nil
}

// keeps tells whether the row's result is to stay as it is: another response is sure to come, or the row's last update was left out.
func (d *dueAnswers[K]) keeps(key K) (bool, error) {
	if d == nil {
		return false, nil
	}
	if err := d.encode(key); err != nil {
		return false, err
	}
	_, due := d.rows[string(d.key)]
	return due || d.unasked[string(d.key)], nil
}

// none notes that none is: the row has changed and needn't be answered.
func (d *dueAnswers[K]) none(key K) error {
	if d == nil || len(d.rows) == 0 && len(d.unasked) == 0 {
		return nil
	}
	if err := d.encode(key); err != nil {
		return err
	}
	delete(d.rows, string(d.key))
	delete(d.unasked, string(d.key))
	return nil
}
