// Package azurestore is the object store on Azure Blob Storage and Data Lake Storage Gen2, through Microsoft's client. Importing it registers the schemes az, abfs and
// abfss with object.Open:
//
//	az://container/folder?account=NAME                          or without account, by AZURE_STORAGE_ACCOUNT_NAME
//	abfss://container@NAME.dfs.core.windows.net/folder          as Spark and Fabric write it
//	az://container/folder?endpoint=http://127.0.0.1:10000/devstoreaccount1   an emulator (Azurite) or another cloud's endpoint
//
// Credentials are looked for in this order: AZURE_STORAGE_CONNECTION_STRING, which is refused if it is of another account than the URL names;
// AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_KEY with the account's key;
// AZURE_STORAGE_SAS_TOKEN; and then by Azure's usual chain (DefaultAzureCredential): a service principal or workload identity in the environment, a managed identity, what `az
// login` stored.
//
// Put-if-absent is a Put Blob with If-None-Match: *, a single request that is never repeated by the client: an answer that refuses it is clear, anything else is
// object.ErrUnknown, and whoever called looks. Everything else is tried again by the client, a few times.
//
// The client is Microsoft's own, not gocloud.dev's driver, which stores the % of escaped partition values in keys as "__0x25__", where no other reader finds it
// (docs/decisions/object-stores.md).
//
// The package is apart from object so that programs and tests that stay on local disk don't link the client. It must not know
// tables.
package azurestore
