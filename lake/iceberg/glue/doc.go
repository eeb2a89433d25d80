// Package glue brings Iceberg catalogs in AWS Glue, by configuration: region and credentials come from the environment as with every
// AWS client (AWS_REGION, AWS_PROFILE, roles), or from properties. It also brings s3:// locations.
//
// It is a package of its own so that programs with another catalog don't link the AWS client of Glue.
package glue
