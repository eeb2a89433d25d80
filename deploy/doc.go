// Package deploy holds what operators deploy beside an application: Prometheus' alert rules, Grafana's dashboard, and a manifest for
// Kubernetes. There is no code; its tests compare the first two with the catalogue of metrics, and the manifest with what the program takes.
package deploy
