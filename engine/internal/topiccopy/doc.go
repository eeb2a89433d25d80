// Package topiccopy keeps a copy of a topic in a database: a store for each partition, with the last value of each key, as committed. It is a View of package
// engine without its types.
//
// A copy is opened, catches up with where the topic's ends were, and then follows the topic until it is told to end. On disk it goes on where it was; where the
// topic was made anew, or its log has lost what comes next, it is read anew, since nothing would tell what was deleted meanwhile.
//
// The package knows neither serdes nor who asks for rows.
package topiccopy
