import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url))
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pool-allocation')

/** The names in the Containerfile. */
const BASE = 'docker.io/library/node:24-bookworm-slim'
const TERRAFORM = 'docker.io/hashicorp/terraform:1.11.4'
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'

const findProgram = (name: string): string | undefined =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .concat('/usr/sbin')
    .map(folder => join(folder, name))
    .find(existsSync)

const programs = ['buildah', 'crun', 'debootstrap', 'terraform', 'unshare']
const absent = programs.filter(name => findProgram(name) === undefined)

/** What is missing and how to install it; undefined: images can be built and run. */
export const missingImageTools =
  absent.length > 0
    ? `the tests of the images need ${absent.join(', ')}: apt-get install buildah crun debootstrap; .ci/run installs Terraform`
    : undefined

/** debootstrap and the containers of the tests need root. */
export const isRoot = process.getuid?.() === 0

/** What the test reads of the configuration of an image. */
export interface ImageConfig {
  readonly Cmd: readonly string[]
  readonly Entrypoint: readonly string[]
  readonly Env: readonly string[]
  readonly User: string
  readonly WorkingDir: string
  readonly Labels: Readonly<Record<string, string>>
  readonly Healthcheck?: { readonly Test: readonly string[] }
}

export interface Image {
  readonly config: ImageConfig
  /** The files of the image. A container must not write here. */
  readonly rootfs: string
}

/** The size of the files in a folder. */
const readSize = async (folder: string): Promise<number> => {
  const { stdout } = await run('du', ['-s', '--block-size=1', '--one-file-system', folder])
  return Number.parseInt(stdout, 10)
}

/** A minimal Debian. It is kept outside the checkout, because making it takes more than a minute. */
const makeDebian = async (): Promise<string> => {
  const folder = join(CACHE, 'debian-bookworm')
  if (existsSync(folder)) return folder
  await mkdir(CACHE, { recursive: true })
  const unfinished = await mkdtemp(`${folder}-`)
  await run(findProgram('debootstrap') ?? '', ['--variant=minbase', 'bookworm', unfinished], { maxBuffer: 2 ** 25 })
  await rm(join(unfinished, 'var/cache/apt'), { recursive: true })
  await rename(unfinished, folder)
  return folder
}

/**
 * Builds images of infra/image/Containerfile without a registry. The base image and the one with Terraform are stand-ins:
 * a minimal Debian with this Node, and the machine's Terraform.
 */
export class ImageBuilder implements AsyncDisposable {
  readonly #storage: string
  readonly #options: readonly string[]
  /** Bytes. */
  baseSize = 0

  private constructor(storage: string, driver: string) {
    this.#storage = storage
    const [root, runRoot] = [join(storage, 'root'), join(storage, 'run')]
    this.#options = ['--storage-driver', driver, '--root', root, '--runroot', runRoot]
  }

  static async open(): Promise<ImageBuilder> {
    await mkdir(CACHE, { recursive: true })
    const debian = await makeDebian()
    const start = async (driver: string) => {
      const builder = new ImageBuilder(await mkdtemp(join(CACHE, 'images-')), driver)
      try {
        const base = await builder.#buildah('from', 'scratch')
        return { builder, base, folder: await builder.#buildah('mount', base) }
      } catch (error) {
        await builder[Symbol.asyncDispose]()
        throw error
      }
    }
    // It copies no layer, but does not work everywhere, such as in a container.
    const { builder, base, folder } = await start('overlay').catch(() => start('vfs'))
    await run('cp', ['-a', `${debian}/.`, folder])
    await copyFile(process.execPath, join(folder, 'usr/local/bin/node'))
    builder.baseSize = await readSize(folder)
    await builder.#commit(base, BASE)
    return builder
  }

  /** The image that only the one with Terraform needs. */
  async makeTerraform(): Promise<void> {
    const terraform = await this.#buildah('from', 'scratch')
    await this.#buildah('add', '-q', terraform, findProgram('terraform') ?? '', '/bin/terraform')
    await this.#buildah('add', '-q', terraform, CERTIFICATES, CERTIFICATES)
    await this.#commit(terraform, TERRAFORM)
  }

  async build(target: string): Promise<Image> {
    const file = join(ROOT, 'infra/image/Containerfile')
    const args = ['--build-arg', 'VERSION=1.0.0', '--build-arg', 'REVISION=abc', '--target', target, '-f', file]
    // The OCI format has no health check.
    const format = ['--format', 'docker', '--isolation', 'chroot', '--pull-never', '-q', '-t', target]
    await this.#buildah('build', ...format, ...args, ROOT)
    const container = await this.#buildah('from', '--pull-never', target)
    const { Docker } = JSON.parse(await this.#buildah('inspect', container))
    return { config: Docker.config, rootfs: await this.#buildah('mount', container) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#buildah('umount', '--all')
    await rm(this.#storage, { recursive: true, force: true })
  }

  async #commit(container: string, name: string): Promise<void> {
    await this.#buildah('commit', '-q', '--rm', container, name)
  }

  async #buildah(...args: string[]): Promise<string> {
    const { stdout } = await run('buildah', [...this.#options, ...args], { maxBuffer: 2 ** 25 })
    return stdout.trim()
  }
}

/** What an image adds to its base, in bytes. */
export const measureAddition = async (image: Image, builder: ImageBuilder): Promise<number> =>
  (await readSize(image.rootfs)) - builder.baseSize

/** `name@version` of each package in the list of the licences, which the build makes from the code in the bundle. */
export const readBundledPackages = async (image: Image): Promise<readonly string[]> => {
  const text = await readFile(join(image.rootfs, 'app/LICENSES.txt'), 'utf8')
  return Array.from(text.matchAll(/^(\S+) (\d+\.\d+\.\d+\S*) \(\S+\)$/gm), ([, name, version]) => `${name}@${version}`)
}

/** `name@version` of each component in the SBOM. */
export const readSbom = async (image: Image): Promise<readonly string[]> => {
  const { components } = JSON.parse(await readFile(join(image.rootfs, 'app/sbom.cdx.json'), 'utf8'))
  return components.map(
    ({ group, name, version }: Record<string, string>) => `${group ? `${group}/` : ''}${name}@${version}`,
  )
}
