// Package deploy holds what operators deploy beside an application: Prometheus' alert rules and Grafana's dashboard. There is no code; its tests
// compare both with the catalogue of metrics.
package deploy
