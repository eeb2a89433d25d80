package state

import "bytes"

// skipList orders the entries of an overlay by key. Node numbers are entry numbers + 1; 0 is the head and the end. Entries are only
// ever added within a generation, so an iterator on the list survives writes.
type skipList struct {
	towers []uint32 // of each node: where its links start in links
	links  []uint32 // of each node: previous, then next on each level
	level  int      // levels in use
	rnd    uint32
}

const maxLevel = 18

// nilNode is the head when walked over, and the end when reached.
const nilNode = 0

func (l *skipList) reset() {
	l.towers, l.links, l.level = l.towers[:0], l.links[:0], 0
}

// len is the number of entries in the list.
func (l *skipList) len() int { return max(0, len(l.towers)-1) }

func (l *skipList) next(n uint32, level int) uint32 { return l.links[l.towers[n]+1+uint32(level)] }

func (l *skipList) prev(n uint32) uint32 { return l.links[l.towers[n]] }

// seekGE gives the first node whose key is at or after key.
func (l *skipList) seekGE(o *overlay, key []byte) uint32 {
	if len(l.towers) == 0 {
		return nilNode
	}
	n := l.seekLess(o, key, nil)
	return l.next(n, 0)
}

// seekLT gives the last node whose key is before key.
func (l *skipList) seekLT(o *overlay, key []byte) uint32 {
	if len(l.towers) == 0 {
		return nilNode
	}
	return l.seekLess(o, key, nil)
}

// seekLess gives the last node before key, the head if there is none, and fills path with the nodes before key on each level.
func (l *skipList) seekLess(o *overlay, key []byte, path *[maxLevel]uint32) uint32 {
	n := uint32(nilNode)
	for lv := l.level - 1; lv >= 0; lv-- {
		for {
			next := l.next(n, lv)
			if next == nilNode || bytes.Compare(o.entryKey(next-1), key) >= 0 {
				break
			}
			n = next
		}
		if path != nil {
			path[lv] = n
		}
	}
	return n
}

// insert adds the next entry. Entries must be added in the order of their numbers.
func (l *skipList) insert(o *overlay, e uint32) {
	if len(l.towers) == 0 {
		l.towers = append(l.towers, 0)
		for range maxLevel + 1 {
			l.links = append(l.links, nilNode)
		}
		l.level = 1
	}
	var path [maxLevel]uint32 // levels not in use yet start at the head
	before := l.seekLess(o, o.entryKey(e), &path)
	height := l.randomHeight()
	l.level = max(l.level, height)

	node := e + 1
	tower := uint32(len(l.links))
	l.towers = append(l.towers, tower)
	l.links = append(l.links, before)
	for lv := range height {
		p := l.towers[path[lv]] + 1 + uint32(lv)
		l.links = append(l.links, l.links[p])
		l.links[p] = node
	}
	l.links[l.towers[l.next(node, 0)]] = node
}

// randomHeight gives height h with probability 3/4^h.
func (l *skipList) randomHeight() int {
	l.rnd = l.rnd*1664525 + 1013904223
	h := 1
	for r := l.rnd >> 4; r&3 == 0 && h < maxLevel; r >>= 2 {
		h++
	}
	return h
}
