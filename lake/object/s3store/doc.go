// Package s3store is the object store on S3 and its compatibles, through gocloud.dev. Importing it registers the scheme s3 with
// object.Open:
//
//	s3://bucket/folder?region=eu-central-1
//	s3://bucket/folder?endpoint=http://127.0.0.1:9000&use_path_style=true&region=us-east-1
//
// Credentials come by the AWS SDK's usual chain: environment, shared files, web identity, instance role.
//
// Put-if-absent is a PUT with If-None-Match: *, always in a single request, since some compatibles ignore the condition on
// multipart uploads. A store that ignores it altogether is found by object.CheckPutIfAbsent.
//
// The package is apart from object so that programs and tests that stay on local disk don't link the AWS client. It must not know
// tables.
package s3store
