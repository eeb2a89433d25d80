// Package console is a page about an instance, for people: its topology as a drawing, its tasks with positions, lag and restores, its stores, the
// tables that it lands in, and the other instances of the application.
//
//	e, err := engine.New(plan, engine.Brokers(…), engine.HTTP(":8080"), console.Serve())
//
// serves it at /console, on the listener of the metrics; Handler is for a server of one's own. It only shows, and has no access control of its own:
// who reaches the metrics sees it. What it shows of the application's data is names, offsets, counts and times, no keys and values, and nothing of
// how the clients are configured.
//
// A request takes a look at the engine (look.go), which is kept for a moment for others who look, and makes a picture of it (picture.go), which is
// answered as JSON or filled into the page (page.go, page.html). While nobody looks nothing is done. The drawing is made once, from the plan
// (drawing.go, svg.go; internal/layered says where things go).
//
// The page works without scripts and loads nothing from elsewhere. With them it refreshes itself (console.js).
package console
