/** A valid request for a deployment in pool mode. `change` can add object storage. */
export const deploymentRequest = (subdomain: string, change: object = {}) => ({
  orgName: 'Acme',
  orgEmail: 'ops@acme.example',
  sovereignDomainMode: 'pool',
  sovereignPoolDomain: 'pool.test',
  sovereignSubdomain: subdomain,
  providers: ['local'],
  region: 'fsn1',
  sshPublicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ops@acme',
  ...change,
})

export const storageSection = ({
  accessKey,
  secretKey,
}: {
  readonly accessKey: string
  readonly secretKey: string
}) => ({
  providers: ['hetzner'],
  objectStorageRegion: 'fsn1',
  objectStorageAccessKey: accessKey,
  objectStorageSecretKey: secretKey,
})
