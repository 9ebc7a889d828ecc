import type { Remains } from './repository.ts'

/** What remains under an FQDN and who can clear it. It names nothing that belongs to the other tenant's deployment. */
export const toRemainsDetail = (sovereignFQDN: string, { hasInfrastructure, bucket }: Remains): string =>
  [
    ...(hasInfrastructure
      ? [
          `Infrastructure of an earlier deployment of ${sovereignFQDN} remains: its owner can destroy it, or an operator can abandon it (DELETE of the deployment with ?abandon=true).`,
        ]
      : []),
    ...(bucket === null
      ? []
      : [
          `The bucket ${bucket} of an earlier deployment of ${sovereignFQDN} remains: its owner can apply that deployment again, or an operator can lift the claim (DELETE /api/v1/buckets/${bucket}).`,
        ]),
  ].join(' ')
