import { createHash } from 'node:crypto'
import { access, constants, mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { withTimeout } from '@pool/runtime/database/time'
import { isJsonObject, parseJson } from '../../lib/text.ts'
import { captureShortly, type ProcessExit } from './process-group.ts'
import { isModuleFile } from './workdir.ts'

const INSTALL =
  'install Terraform (https://developer.hashicorp.com/terraform/install) or OpenTofu (https://opentofu.org/docs/intro/install/)'
const VERSION_TIMEOUT_MS = 10_000
/** A folder on a network that does not respond must not stop a request for longer. */
const DATA_DIR_TIMEOUT_MS = 5_000
/** Sufficient for the generated configuration, and the first version of OpenTofu. */
const MIN_VERSION = '1.6.0'

/** Parses the output of `version -json`; null if it is not Terraform's or OpenTofu's. */
export const parseVersion = (output: string): string | null => {
  const parsed = parseJson(output)
  const version = isJsonObject(parsed) ? parsed.terraform_version : null
  return typeof version === 'string' && /^\d+\.\d+\.\d+/.test(version) ? version : null
}

/** Compares the three numbers: a pre-release counts as its release. */
export const isTooOld = (version: string): boolean => {
  const toNumbers = (text: string) => text.split(/[.+-]/, 3).map(Number)
  const minimum = toNumbers(MIN_VERSION)
  const difference = toNumbers(version)
    .map((number, index) => number - (minimum[index] ?? 0))
    .find(value => value !== 0)
  return (difference ?? 0) < 0
}

const explainNoVersion = (path: string, { signal }: ProcessExit): string =>
  signal !== null
    ? `${path} was ended by ${signal} before it reported a version: check the log of the system for the cause, such as too little memory.`
    : `${path} did not report a version: set the path of Terraform or OpenTofu in PDM_TERRAFORM_BINARY.`

const isExecutable = async (path: string): Promise<boolean> => {
  const isAllowed = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  return isAllowed && (await stat(path)).isFile()
}

/** Node's own recursive `mkdir` never ends in a file system that answers "no such directory" to every creation. */
const makeDirectory = async (path: string): Promise<void> => {
  const make = () => mkdir(path, { mode: 0o700 })
  try {
    await make()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || path === dirname(path)) throw error
    await makeDirectory(dirname(path))
    await make()
  }
}

/** A call of the system that failed: not a defect of this service, and not an error of Terraform. */
export const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'errno' in error && 'syscall' in error

/** A sentence for users. The message of the error has its code and its path. */
export const explainSystemError = ({ code = '', message }: NodeJS.ErrnoException): string =>
  code === 'ENOSPC' || code === 'EDQUOT'
    ? `The disk of PDM_DEPLOYMENTS_DIR is full (${code}): free some space, then retry.`
    : `This machine failed (${message}): check PDM_DEPLOYMENTS_DIR, PDM_TERRAFORM_MODULE and the log of the system, then retry.`

export interface PrerequisitesOptions {
  readonly binary: string | null
  readonly dataDir: string
  readonly moduleDir: string
  /** The module of deployments with object storage, if it is another one. */
  readonly bucketModuleDir: string
  /** Environment of the binary. */
  readonly env: Readonly<Record<string, string>>
}

/** What Terraform needs on this machine. */
export class Prerequisites {
  readonly #options: PrerequisitesOptions
  /** The result of the last version check. */
  #versionCheck: { readonly file: string; readonly problem: string | null } | undefined

  constructor(options: PrerequisitesOptions) {
    this.#options = options
  }

  /** What is missing, as a sentence, or null. Rejects with the reason of `signal` when it aborts. */
  async check(signal?: AbortSignal): Promise<string | null> {
    return (await this.checkBinary(signal)) ?? (await this.#checkDataDir()) ?? (await this.checkModule())
  }

  /** Resolves a path, or a name on the PATH; null if there is no such executable. */
  async findBinary(): Promise<string | null> {
    const { binary, env } = this.#options
    const names = binary === null ? ['terraform', 'tofu'] : [binary]
    const directories = (env.PATH ?? '').split(delimiter).filter(isAbsolute)
    for (const name of names) {
      const paths = name.includes('/') ? [resolve(name)] : directories.map(directory => join(directory, name))
      for (const path of paths) if (await isExecutable(path)) return path
    }
    return null
  }

  /** As `check`, of the binary only. */
  async checkBinary(signal?: AbortSignal): Promise<string | null> {
    const path = await this.findBinary()
    if (path !== null) return this.#checkVersion(path, signal)
    const { binary } = this.#options
    return binary === null
      ? `Neither terraform nor tofu is on the PATH: ${INSTALL}, or set PDM_TERRAFORM_BINARY.`
      : `PDM_TERRAFORM_BINARY is ${binary}, which is not an executable file: ${INSTALL}.`
  }

  /** Runs the binary only if its file has changed since the last check. */
  async #checkVersion(path: string, signal: AbortSignal | undefined): Promise<string | null> {
    const { mtimeMs, size, ino } = await stat(path)
    const file = `${path} ${mtimeMs} ${size} ${ino}`
    if (this.#versionCheck?.file === file) return this.#versionCheck.problem
    const { env } = this.#options
    const timeout = AbortSignal.timeout(VERSION_TIMEOUT_MS)
    const ended = signal ? AbortSignal.any([signal, timeout]) : timeout
    const { exit, stdout } = await captureShortly([path, 'version', '-json'], { cwd: '/', env, signal: ended })
    signal?.throwIfAborted()
    const version = exit.code === 0 ? parseVersion(stdout) : null
    // Not cached: the machine may have been too busy for a response in time.
    if (timeout.aborted)
      return `${path} did not report a version within ${VERSION_TIMEOUT_MS / 1_000} s: run it by hand, or set another path in PDM_TERRAFORM_BINARY.`
    if (!version) return explainNoVersion(path, exit)
    const problem = isTooOld(version)
      ? `${path} is version ${version}, but ${MIN_VERSION} or later is required: ${INSTALL}, or set PDM_TERRAFORM_BINARY.`
      : null
    this.#versionCheck = { file, problem }
    return problem
  }

  #checkDataDir(): Promise<string | null> {
    const { dataDir } = this.#options
    // With the dot, a file in its place is an error.
    const isWritable = makeDirectory(dataDir).then(() => access(`${dataDir}/.`, constants.W_OK | constants.X_OK))
    return withTimeout(isWritable, DATA_DIR_TIMEOUT_MS).then(
      () => null,
      () => `PDM_DEPLOYMENTS_DIR is ${dataDir}, which is not writable; check its permissions.`,
    )
  }

  /** As `check`, of the module only. */
  async checkModule(): Promise<string | null> {
    const { moduleDir } = this.#options
    const names = await readdir(moduleDir).catch(() => [])
    if (!names.some(isModuleFile))
      return `PDM_TERRAFORM_MODULE is ${moduleDir}, which is not a directory with a Terraform module.`
    const missing = await findMissingModule(await realpath(moduleDir), new Set())
    if (missing === null) return null
    const { caller, source, path } = missing
    return `PDM_TERRAFORM_MODULE is ${moduleDir}, but ${caller} calls the module ${source}, and ${path} is not a directory; copy that directory too, or set PDM_TERRAFORM_MODULE to a module with everything that it calls.`
  }

  /** Whether the module declares the bucket that it makes. */
  async makesBucket(): Promise<boolean> {
    return declaresOutput(await readModuleFiles(this.#options.bucketModuleDir), BUCKET_OUTPUT)
  }

  /** What the module does not make, as sentences; null if it is complete. */
  async describeLimits(): Promise<string | null> {
    const { moduleDir, bucketModuleDir } = this.#options
    if (moduleDir !== bucketModuleDir) return BUILT_IN_LIMITS
    if (await this.makesBucket()) return null
    return `PDM_TERRAFORM_MODULE is ${moduleDir}, which has no output ${BUCKET_OUTPUT}: deployments with object storage are rejected, because it makes no bucket.`
  }
}

const BUCKET_OUTPUT = 'object_storage_bucket'
const BUILT_IN_LIMITS =
  'The built-in module creates no machines: the load balancer of a deployment has an address of 198.18.0.0/15, which is not routed, and with a DNS provider other than local such a deployment fails. Set PDM_TERRAFORM_MODULE to a module of your own, or PDM_ACCEPT_TEST_ADDRESSES=true for a test.'

const readModuleFiles = async (directory: string): Promise<ReadonlyMap<string, string>> => {
  const names = (await readdir(directory).catch(() => [])).filter(isModuleFile)
  const read = async (name: string) => [name, await readFile(join(directory, name), 'utf8').catch(() => '')] as const
  return new Map(await Promise.all(names.map(read)))
}

interface MissingModule {
  /** The file with the call. */
  readonly caller: string
  readonly source: string
  /** Where the module would be. */
  readonly path: string
}

/**
 * The first module that a call by a relative path does not find, also in the modules that are called; null if there is none.
 * A run uses the module where it is, so what it calls must be there too.
 */
const findMissingModule = async (directory: string, visited: Set<string>): Promise<MissingModule | null> => {
  visited.add(directory)
  for (const { file, source } of findLocalModuleCalls(await readModuleFiles(directory))) {
    const path = join(directory, source)
    const called = await realpath(path).catch(() => null)
    const isDirectory = called !== null && (await stat(called)).isDirectory()
    if (!isDirectory) return { caller: join(directory, file), source, path }
    const missing = visited.has(called) ? null : await findMissingModule(called, visited)
    if (missing !== null) return missing
  }
  return null
}

/** The directories of a module and of those that it calls by a relative path, without symbolic links. */
export const listModuleDirectories = async (moduleDir: string): Promise<readonly string[]> => {
  const visited = new Set<string>()
  await findMissingModule(await realpath(moduleDir), visited)
  return [...visited]
}

/** A call of another module by a relative path, which Terraform resolves from the directory of the calling file. */
interface LocalModuleCall {
  /** Name of the file with the call. */
  readonly file: string
  readonly source: string
}

/**
 * A string and a heredoc are one token each. A template that contains strings is several tokens, whose braces match unless one
 * of these strings has a single brace; then later calls are missed, and Terraform reports them.
 */
const TOKEN = /(?:#|\/\/).*|\/\*[\s\S]*?\*\/|<<-?(\w+)\r?\n[\s\S]*?\n[ \t]*\1\b|"(?:[^"\\]|\\.)*"|[\w-]+|\S/g
const COMMENT = /^(?:#|\/[/*])/

/** Only a literal says where the module is. */
const LOCAL_SOURCE = /^\.\.?\/[^$%\\]*$/

const findInBlocks = (text: string): readonly string[] => {
  const tokens = (text.match(TOKEN) ?? []).filter(token => !COMMENT.test(token))
  const sources: string[] = []
  let depth = 0
  let isModule = false
  for (const [index, token] of tokens.entries()) {
    if (token === '{') {
      if (depth === 0) isModule = tokens[index - 2] === 'module'
      depth += 1
    } else if (token === '}') {
      depth -= 1
    } else if (token === 'source' && depth === 1 && isModule && tokens[index + 1] === '=') {
      sources.push(tokens[index + 2]?.replace(/^"(.*)"$/, '$1') ?? '')
    }
  }
  return sources
}

/** Whether a module has an output of this name. `files`: name and text of the files in its directory. */
export const declaresOutput = (files: ReadonlyMap<string, string>, name: string): boolean =>
  [...files].some(([file, text]) => {
    if (file.endsWith('.json')) {
      const outputs = toBlocks(parseJson(text)).flatMap(root => toBlocks('output' in root ? root.output : null))
      return outputs.some(output => Object.hasOwn(output, name))
    }
    const tokens = (text.match(TOKEN) ?? []).filter(token => !COMMENT.test(token))
    return tokens.some((token, at) => token === 'output' && tokens[at + 1] === `"${name}"` && tokens[at + 2] === '{')
  })

/** In the JSON syntax, each block is an object or a list of objects. */
const toBlocks = (value: unknown): readonly object[] =>
  Array.isArray(value) ? value.flatMap(toBlocks) : typeof value === 'object' && value !== null ? [value] : []

const findInJson = (text: string): readonly string[] =>
  toBlocks(parseJson(text))
    .flatMap(root => toBlocks('module' in root ? root.module : null))
    .flatMap(modules => Object.values(modules).flatMap(toBlocks))
    .flatMap(call => ('source' in call && typeof call.source === 'string' ? [call.source] : []))

/** A file that Terraform and OpenTofu both read: of `a.tf` and `a.tofu`, OpenTofu reads the latter only. */
const isReadByBoth = (name: string, names: ReadonlySet<string>): boolean =>
  /\.tf(?:\.json)?$/.test(name) && !names.has(name.replace(/\.tf(?=\.json$|$)/, '.tofu'))

const isOverride = (name: string): boolean => /(?:^|_)override\.(?:tf|tofu)(?:\.json)?$/.test(name)

/**
 * The calls by a relative path in the files of one directory, by name and text. It returns none where a call can be missed or
 * replaced: in files that only one of Terraform and OpenTofu reads, and in a directory with override files.
 */
export const findLocalModuleCalls = (files: ReadonlyMap<string, string>): readonly LocalModuleCall[] => {
  const names = new Set(files.keys())
  if ([...names].some(isOverride)) return []
  return [...files].flatMap(([file, text]) => {
    if (!isReadByBoth(file, names)) return []
    const sources = file.endsWith('.json') ? findInJson(text) : findInBlocks(text)
    return sources.filter(source => LOCAL_SOURCE.test(source)).map(source => ({ file, source }))
  })
}

const HASH_CHARACTERS = 12

/** Every file of the module, by path. Names that begin with a dot belong to tools, such as `.terraform`. */
const listFiles = async (root: string, path = ''): Promise<string[]> => {
  const names = (await readdir(join(root, path))).filter(name => !name.startsWith('.')).sort()
  const lists = await Promise.all(
    names.map(async name => {
      const child = path === '' ? name : `${path}/${name}`
      // A mounted ConfigMap has symbolic links.
      const entry = await stat(join(root, child)).catch(() => null)
      if (entry?.isDirectory()) return listFiles(root, child)
      return entry?.isFile() ? [child] : []
    }),
  )
  return lists.flat()
}

/**
 * Identifies the content of a module: the name of its directory, and the beginning of the SHA-256 of its files. Modules
 * outside the directory that it calls are not part of it.
 */
export const readModuleVersion = async (moduleDir: string): Promise<string> => {
  const hash = createHash('sha256')
  for (const path of await listFiles(moduleDir)) {
    const content = await readFile(join(moduleDir, path))
    // With both lengths, so that no two sets of files give the same input.
    hash.update(`${Buffer.byteLength(path)} ${path} ${content.length} `).update(content)
  }
  return `${basename(moduleDir)}@sha256:${hash.digest('hex').slice(0, HASH_CHARACTERS)}`
}
