// Package gcsstore is the object store on Google Cloud Storage, through Google's client of its JSON API. Importing it registers the scheme gs with
// object.Open:
//
//	gs://bucket/folder
//	gs://bucket/folder?user_project=PROJECT                             a bucket whose requester pays
//	gs://bucket/folder?endpoint=http://127.0.0.1:4443&anonymous=true    an emulator
//
// Credentials come by Google's usual chain (Application Default Credentials): GOOGLE_APPLICATION_CREDENTIALS with keys of a service account or workload identity
// federation, what `gcloud auth application-default login` stored, the metadata server of a machine, Cloud Run or GKE. STORAGE_EMULATOR_HOST is obeyed as by
// Google's own clients.
//
// Put-if-absent is an upload with ifGenerationMatch=0 in a single request that is never repeated by the client: an answer that refuses it is clear, anything else is
// object.ErrUnknown, and whoever called looks. Everything else is tried again, a few times, after answers and errors that pass.
//
// The client is google.golang.org/api/storage/v1, not cloud.google.com/go/storage, which brings 25 MB of gRPC machinery into every binary for an
// API that isn't used here (docs/decisions/object-stores.md).
//
// The package is apart from object so that programs and tests that stay on local disk don't link the client. It must not know
// tables.
package gcsstore
