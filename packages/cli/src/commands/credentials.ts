import { objectStorageRegions } from '@pool/contract'
import type { FlagSpec, GroupSpec } from '../command.ts'
import { EXIT, UsageError } from '../exit-codes.ts'
import { readPrivateFile } from '../private-file.ts'
import type { Session } from '../session.ts'
import { readTokenFile } from '../token-store.ts'
import { toRequiredText, toText } from './flags.ts'
import { oneCall } from './one-call.ts'

export interface StorageKeys {
  readonly accessKey: string
  readonly secretKey: string
}

export const keysFileFlag: FlagSpec = {
  flags: '--keys-file <file>',
  description: 'a JSON file with accessKey and secretKey, mode 600; by default, poolctl prompts for them',
  suggest: 'files',
}

/** Keys from a file that only the user can read, or from a prompt. Never from an argument. */
export const readStorageKeys = async (session: Session, file: string | undefined): Promise<StorageKeys> => {
  if (file === undefined) {
    const otherwise = 'there is no terminal to type the keys; name a file with --keys-file.'
    const accessKey = await session.askSecret('Access key', otherwise)
    return { accessKey, secretKey: await session.askSecret('Secret key', otherwise) }
  }
  const text = await readPrivateFile(file, 'the keys file')
  if (text === null) throw new UsageError(`the keys file ${file} does not exist; check the path.`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const { accessKey, secretKey } = Object(value)
  if (typeof accessKey === 'string' && typeof secretKey === 'string') return { accessKey, secretKey }
  throw new UsageError(`the keys file ${file} must be a JSON object with the texts accessKey and secretKey.`)
}

const showResult = async (
  session: Session,
  result: { readonly valid: boolean; readonly message: string },
): Promise<number> => {
  await session.output.item(result, {
    fields: [
      ['valid', result.valid ? 'yes' : 'no', result.valid ? 'green' : 'red'],
      ['message', result.message],
    ],
  })
  return result.valid ? EXIT.done : EXIT.negative
}

const exitCodes = [
  '0  the provider accepts them',
  '1  the provider rejects them',
  '4  they could not be checked; they may be valid',
]

const validate = oneCall({
  name: 'validate',
  summary: 'Check whether the object storage accepts an access key and a secret key',
  description: 'The keys come from a prompt or from a file, are sent once and are not stored.',
  flags: [
    {
      flags: '--region <region>',
      description: 'the region of the object storage',
      choices: objectStorageRegions,
      isRequired: true,
    },
    { flags: '--provider <name>', description: 'the object storage provider; keys are sent to no other one' },
    keysFileFlag,
  ],
  examples: ['credentials validate --region fsn1', 'credentials validate --region fsn1 --keys-file keys.json'],
  operation: 'validateObjectStorageKeys',
  exitCodes,
  params: async ({ flags }, session) => {
    // Before the user types anything.
    await session.api()
    const region = flags.region as (typeof objectStorageRegions)[number]
    const keys = await readStorageKeys(session, toText(flags.keysFile))
    return { region, provider: toText(flags.provider), ...keys }
  },
  show: showResult,
})

const validateToken = oneCall({
  name: 'validate-token',
  summary: 'Check whether a provider accepts an API token',
  description: 'The token comes from a prompt or from a file, is sent once and is not stored.',
  flags: [
    { flags: '--provider <name>', description: 'the provider of the token', isRequired: true },
    {
      flags: '--token-file <file>',
      description: 'a file with the token, mode 600; by default, poolctl prompts for it',
      suggest: 'files',
    },
  ],
  examples: [
    'credentials validate-token --provider hetzner',
    'credentials validate-token --provider hetzner --token-file token',
  ],
  operation: 'validateToken',
  exitCodes,
  params: async ({ flags }, session) => {
    const provider = toRequiredText(flags.provider, '--provider')
    await session.api()
    const file = toText(flags.tokenFile)
    const otherwise = 'there is no terminal to type the token; name a file with --token-file.'
    const token = file === undefined ? await session.askSecret('Token', otherwise) : await readTokenFile(file)
    return { provider, token }
  },
  show: showResult,
})

export const credentialCommands: GroupSpec = {
  name: 'credentials',
  summary: 'Keys and tokens of providers: check them before use',
  commands: [validate, validateToken],
}
