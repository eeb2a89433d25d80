// Package layered draws a directed graph in layers, from top to bottom: it says where boxes go and which way edges take between them.
//
// It does so in the classic steps (Sugiyama, Tagawa and Toda): edges that close a circle are turned round; each box gets a layer below those that
// lead to it (layers.go); edges over several layers get a place in each of them; boxes change places within their layer until few edges cross
// (order.go); and then move sideways toward those that they are connected with (place.go). The same graph always gives the same drawing.
//
// The package knows nothing of topologies, and of no way to draw.
package layered
