// Package s3 lets Iceberg tables lie in S3 and stores that speak its protocol: programs import it for its effect, as they import
// lake/object/s3store for Delta tables. Credentials and region come from the environment as with every AWS client, or from the
// catalog's properties ("s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.region").
//
// It must not know tables.
package s3
