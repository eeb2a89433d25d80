package task

// Mark is one value of the operators' own progress, such as the last close time that a node has emitted.
type Mark struct {
	Key   string
	Value int64
}

// progress holds the marks of all nodes, in the order in which they came. There are few, and a node that moves with each record knows where its
// own is.
type progress struct{ marks []Mark }

// find gives the index of a mark, which is probably hint; -1 if there is none.
func (p *progress) find(key string, hint int) int {
	if hint < len(p.marks) && p.marks[hint].Key == key {
		return hint
	}
	for i := range p.marks {
		if p.marks[i].Key == key {
			return i
		}
	}
	return -1
}

// set sets a mark, which is probably at hint, and gives where it is.
func (p *progress) set(key string, value int64, hint int) int {
	i := p.find(key, hint)
	if i < 0 {
		p.marks = append(p.marks, Mark{key, value})
		return len(p.marks) - 1
	}
	p.marks[i].Value = value
	return i
}

// Progress returns the operators' own progress, such as the last close time emitted, which belongs into the committed offsets'
// metadata.
func (t *Task) Progress() map[string]int64 {
	all := make(map[string]int64, len(t.progress.marks))
	for _, m := range t.progress.marks {
		all[m.Key] = m.Value
	}
	return all
}

// CopyProgress is Progress for one who asks for it after each record: it puts it into dst, which it may use again.
func (t *Task) CopyProgress(dst []Mark) []Mark { return append(dst[:0], t.progress.marks...) }

// RestoreProgress sets the operators' progress before Init; of two values for a key the larger counts.
func (t *Task) RestoreProgress(p map[string]int64) {
	for key, value := range p {
		if i := t.progress.find(key, 0); i < 0 || value > t.progress.marks[i].Value {
			t.progress.set(key, value, 0)
		}
	}
	if i := t.progress.find(idleProgress, 0); i >= 0 {
		t.streamTime = max(t.streamTime, t.progress.marks[i].Value)
	}
}

// Progress implements processors.Runtime.
func (rt *runtime) Progress(key string) (int64, bool) {
	i := rt.task.progress.find(key, rt.mark)
	if i < 0 {
		return 0, false
	}
	return rt.task.progress.marks[i].Value, true
}

// SetProgress implements processors.Runtime.
func (rt *runtime) SetProgress(key string, v int64) {
	rt.mark = rt.task.progress.set(key, v, rt.mark)
}
