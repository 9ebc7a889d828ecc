import * as z from 'zod'
import { rule } from './allocation-problem.ts'
import { timestamp } from './common.ts'
import { createFqdn, isHostName } from './fields.ts'

const CHALLENGE_LABEL = '_pool-challenge'

/** The name of the TXT record that proves the control of a domain. */
export const toChallengeName = (domain: string): string => `${CHALLENGE_LABEL}.${domain}`

/** RFC 1035 section 2.3.4: a name has at most 253 characters, the label of the challenge and its dot included. */
export const MAX_PROVABLE_DOMAIN_LENGTH = 253 - toChallengeName('').length

const domainRule = rule(
  'invalid-fqdn',
  `domain is required: a fully qualified domain name in ASCII such as cloud.acme.example, of at most ${MAX_PROVABLE_DOMAIN_LENGTH} characters.`,
)

export const domainChallengeRequest = z
  .object(
    {
      domain: createFqdn(
        domainRule,
        domainRule,
        name => isHostName(name) && name.length <= MAX_PROVABLE_DOMAIN_LENGTH,
      ).meta({
        description: 'The `sovereignFQDN` of the deployment; lower-cased, without trailing dot. IDNs as A-labels.',
        example: 'cloud.acme.example',
      }),
    },
    domainRule,
  )
  .meta({ id: 'DomainChallengeRequest' })

export const domainChallenge = z
  .object({
    domain: z.string(),
    name: z
      .string()
      .meta({ description: 'Where to create the record.', example: '_pool-challenge.cloud.acme.example' }),
    type: z.literal('TXT'),
    value: z.string().meta({ description: 'The text of the record. It proves the domain for one deployment.' }),
    expiresAt: timestamp.meta({ description: 'Create the deployment before this time.' }),
  })
  .meta({ id: 'DomainChallenge' })
export type DomainChallenge = z.infer<typeof domainChallenge>

export const domainCheck = z
  .object({
    domain: z.string(),
    available: z.boolean().meta({ description: 'Whether a new deployment can have the domain.' }),
    reason: z.enum(['in-pool', 'fqdn-conflict', 'fqdn-remains']).optional().meta({
      description:
        'Without `available`. `in-pool`: the domain is in a pool. `fqdn-conflict`: a deployment has it. `fqdn-remains`: an earlier deployment left infrastructure.',
    }),
    detail: z.string().optional().meta({ description: 'With `reason`: what to do.' }),
    proof: z.enum(['not-required', 'proven', 'missing', 'unknown']).meta({
      description:
        '`not-required`: `PDM_BYO_PROOF` is off. `proven`: the TXT record has a valid value. `missing`: it does not exist, or has other values. `unknown`: it could not be looked up.',
    }),
    proofDetail: z.string().optional().meta({ description: 'With `missing` and `unknown`: what to do.' }),
  })
  .meta({ id: 'DomainCheck' })
export type DomainCheck = z.infer<typeof domainCheck>
