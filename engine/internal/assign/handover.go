package assign

// HandOver turns a target into what members are given now: a task that another member still owns is held back until that member
// has given it up and joined again; whoever is to have it goes on keeping its copy up to date, if it has one. moving tells how many tasks are
// held back, so another rebalance has to follow.
func HandOver(target map[string]Placement, members []Member) (now map[string]Placement, moving int) {
	owner := map[TaskID]string{}
	followed := map[string]map[TaskID]bool{}
	for _, m := range members {
		for _, t := range m.Owned {
			if first, ok := owner[t]; !ok || m.ID < first {
				owner[t] = m.ID
			}
		}
		followed[m.ID] = map[TaskID]bool{}
		for _, t := range m.Follows {
			followed[m.ID][t] = true
		}
	}
	now = make(map[string]Placement, len(target))
	for id, p := range target {
		free := make([]TaskID, 0, len(p.Active))
		warmups := append([]TaskID(nil), p.Warmups...)
		for _, t := range p.Active {
			if o, owned := owner[t]; owned && o != id {
				moving++
				if followed[id][t] {
					warmups = append(warmups, t)
				}
				continue
			}
			free = append(free, t)
		}
		Sort(warmups)
		now[id] = Placement{Active: free, Standbys: p.Standbys, Warmups: warmups}
	}
	return now, moving
}
