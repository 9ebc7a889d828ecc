const fieldLabels: Readonly<Record<string, string>> = {
  loadBalancerIP: 'The address',
  objectStorageRegion: 'The region of the object storage',
  orgEmail: 'The mail address',
  orgName: 'The organisation',
  providers: 'A provider',
  region: 'The region',
  sovereignFQDN: 'The domain',
  sovereignPoolDomain: 'The pool',
  sovereignSubdomain: 'The subdomain',
  sshPublicKey: 'The SSH key',
  subdomain: 'The subdomain',
}

/** A message of the contract, which begins with the name of a field of the API, with the label of the form instead. */
export const toFieldText = (message: string): string => message.replace(/^\w+/, name => fieldLabels[name] ?? name)
