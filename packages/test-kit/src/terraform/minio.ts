import { type Provider, ProviderError, type ResourceBehavior } from './resource.ts'
import type { Attributes, Schema } from './schema.ts'

/**
 * What the module uses of the schemas of aminueza/minio 3.11.1 (`terraform providers schema -json`): the provider
 * configuration and the bucket. Replacement and defaults are from the source of that version. The real provider uses protocol 5; the double has
 * its types, which do not distinguish null from zero values, in protocol 6. Defaults from the environment (MINIO_ENDPOINT and
 * others) are omitted, because the module sets all of these arguments.
 */

const minioProvider: Schema = {
  minio_insecure: { type: 'bool', optional: true },
  minio_password: { type: 'string', optional: true, sensitive: true },
  minio_region: { type: 'string', optional: true },
  minio_server: { type: 'string', required: true },
  minio_ssl: { type: 'bool', optional: true },
  minio_user: { type: 'string', optional: true },
}

export const bucket: Schema = {
  id: { type: 'string', optional: true, computed: true, keepsValue: true },
  bucket: { type: 'string', optional: true, computed: true, keepsValue: true, replaces: true },
  force_destroy: { type: 'bool', optional: true, default: false },
  acl: { type: 'string', optional: true, default: 'private' },
  object_locking: { type: 'bool', optional: true, default: false },
  arn: { type: 'string', computed: true, keepsValue: true },
  bucket_domain_name: { type: 'string', computed: true, keepsValue: true },
}

/** The connection settings of the provider. */
export interface S3Connection {
  /** host[:port] */
  readonly server: string
  readonly region: string
  readonly user: string
  readonly password: string
  readonly tls: boolean
}

/** What the provider shows for a code, because the messages of the gateway are empty. */
const MESSAGES: Readonly<Record<string, string>> = {
  AccessDenied: 'Access Denied.',
  InvalidAccessKeyId: 'The Access Key Id you provided does not exist in our records.',
  SignatureDoesNotMatch:
    'The request signature we calculated does not match the signature you provided. Check your key and signing method.',
}

/** An S3 error response. The message is the text that the provider shows for it. */
export class S3Error extends Error {
  override readonly name = 'S3Error'
  readonly status: number

  constructor(status: number, code: string) {
    super(MESSAGES[code] ?? code)
    this.status = status
  }
}

/** The S3 calls that the provider makes for a bucket. They reject with `S3Error`. */
export interface BucketApi {
  exists(bucket: string): Promise<boolean>
  create(bucket: string, locking: boolean): Promise<void>
  hasObjectLock(bucket: string): Promise<boolean>
  /** The bucket policy as JSON; empty: no policy, so the bucket is private. */
  getPolicy(bucket: string): Promise<string>
  /** Returns the status of the response: 204 by S3; 200 or 403 by versions of Ceph. */
  deletePolicy(bucket: string): Promise<number>
  isEmpty(bucket: string): Promise<boolean>
  delete(bucket: string): Promise<void>
}

/** What differs between versions of the provider. */
export interface BucketVersion {
  /** From 3.11.2 on, the creation of a private bucket removes its policy, and fails unless the response is 204. */
  readonly removesPolicy: boolean
}

const toFailure = (message: string, bucket: string, cause: unknown): ProviderError => {
  if (!(cause instanceof S3Error)) throw cause
  return new ProviderError([`[FATAL] ${message} (${bucket}): ${cause.message}`])
}

/** Rejects with the provider's message instead of that of the S3 call. */
const explain = <Result>(message: string, bucket: string, call: Promise<Result>): Promise<Result> =>
  call.catch(cause => {
    throw toFailure(message, bucket, cause)
  })

/**
 * The name of the provider for a policy. Only policies that it would write itself have another name than `private`; for the
 * double, those that let anyone read objects, and nothing else.
 */
const toAcl = (policy: string): string => {
  if (policy === '') return 'private'
  const { Statement: statements = [] } = JSON.parse(policy) as { Statement?: { Action?: unknown }[] }
  return statements.some(({ Action: actions }) => [actions].flat().includes('s3:GetObject')) ? 'public-read' : 'private'
}

/** The bucket resource, after the source of the real provider (3.11.1). */
function bucketResource(
  getConnected: () => { store: BucketApi; connection: S3Connection },
  { removesPolicy }: BucketVersion,
): ResourceBehavior {
  const readComputed = (name: string): Attributes => {
    const { server, tls } = getConnected().connection
    return {
      id: name,
      bucket: name,
      arn: `arn:aws:s3:::${name}`,
      bucket_domain_name: `${tls ? 'https' : 'http'}://${server}/${name}`,
    }
  }

  const read = async (state: Attributes): Promise<Attributes | null> => {
    const name = String(state.id)
    const exists = await explain('error checking bucket existence', name, getConnected().store.exists(name))
    return exists ? { ...state, ...readComputed(name) } : null
  }

  const create = async (name: string, locking: boolean): Promise<void> => {
    const { store } = getConnected()
    // The provider checks first, because S3 returns 200 when a user creates its own bucket again.
    if (await explain('unable to check bucket', name, store.exists(name))) {
      throw new ProviderError([`[FATAL] bucket already exists! (${name}): <nil>`])
    }
    await explain('unable to create bucket', name, store.create(name, locking))
  }

  const removePolicy = async (name: string): Promise<void> => {
    const status = await getConnected().store.deletePolicy(name)
    if ([204, 404].includes(status)) return
    const reason = status === 403 ? 'Access Denied.' : status === 200 ? '200 OK' : String(status)
    throw new ProviderError([
      `[FATAL] unable to remove bucket policy (${name}): ${reason}`,
      `[FATAL] [ACL] Unable to create bucket (${name})`,
    ])
  }

  return {
    async write(planned, prior) {
      const name = String(planned.bucket)
      if (planned.acl !== 'private') throw new Error('no test needs a bucket that is not private')
      if (prior === null) await create(name, planned.object_locking === true)
      try {
        if (removesPolicy && prior?.acl !== planned.acl) await removePolicy(name)
        const created = await read({ ...planned, id: name })
        return created ?? { ...planned, ...readComputed(name) }
      } catch (reason) {
        if (!(reason instanceof ProviderError)) throw reason
        throw new ProviderError(reason.summaries, { ...planned, id: name, arn: null, bucket_domain_name: null })
      }
    },

    // The provider does not read policy, lock or quota: manual changes are not detected.
    read,

    async remove(state) {
      const { store } = getConnected()
      const name = String(state.id)
      if (state.force_destroy !== true && !(await store.isEmpty(name))) {
        throw toFailure(
          'unable to remove bucket',
          name,
          new S3Error(409, 'The bucket you tried to delete is not empty'),
        )
      }
      await explain('unable to remove bucket', name, store.delete(name))
    },

    // An import does not set force_destroy. The plan shows no change, because the provider does not tell null from false.
    async import(name) {
      const { store } = getConnected()
      const exists = await store.exists(name).catch(() => false)
      if (!exists) throw new ProviderError(['could not read minio bucket'])
      return { id: name, acl: toAcl(await store.getPolicy(name)), object_locking: await store.hasObjectLock(name) }
    },
  }
}

/** `connect` reaches the server that the provider is configured with. Default of `version`: as 3.11.1. */
export function minio(
  connect: (connection: S3Connection) => BucketApi,
  version: BucketVersion = { removesPolicy: false },
): Provider {
  let connected: { store: BucketApi; connection: S3Connection } | undefined
  const getConnected = () => {
    if (!connected) throw new Error('the provider is not configured')
    return connected
  }
  return {
    name: 'Minio',
    source: 'aminueza/minio',
    schema: minioProvider,
    resources: { minio_s3_bucket: { schema: bucket, behavior: bucketResource(getConnected, version) } },
    hasLegacyTypes: true,
    configure({ minio_server, minio_region, minio_user, minio_password, minio_ssl }) {
      const connection = {
        server: String(minio_server),
        // Both defaults are the real provider's.
        region: String(minio_region ?? 'us-east-1'),
        tls: minio_ssl === true,
        user: String(minio_user),
        password: String(minio_password),
      }
      connected = { store: connect(connection), connection }
    },
  }
}
