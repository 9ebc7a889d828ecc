import type { ServiceSettings } from '@pool/contract'
import { createForm, type DeploymentForm } from './deployment-form.ts'

export const settings: ServiceSettings = {
  version: '1',
  managedDomains: ['pool.test'],
  drainingDomains: [],
  dnsProvider: 'local',
  writesZones: true,
  acceptsLoopback: true,
  recordNames: ['@'],
  recordTtlSeconds: 60,
  reservationTtlSeconds: 600,
  coolOffSeconds: 0,
  bucketPrefix: 'platform',
  objectStorage: { provider: 'hetzner', domain: 'objects.example', regions: ['fsn1', 'nbg1'] },
  tokenProviders: [],
  deploymentProviders: ['hetzner', 'local'],
  requiresDomainProof: true,
  hasWitness: true,
}
export const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ops'

/** A form whose fields are valid, for tests. */
export const form: DeploymentForm = {
  ...createForm(settings),
  subdomain: ' Acme ',
  orgName: 'Acme',
  orgEmail: 'ops@acme.example',
  providers: ['hetzner'],
  region: 'fsn1',
  sshPublicKey,
}
