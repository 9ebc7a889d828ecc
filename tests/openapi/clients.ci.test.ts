import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { documentFiles } from '@pool/contract/openapi/documents'
import { Program } from '@pool/test-kit/program.ts'
import { isProof, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMissing, type Services, startServices } from './support/services.ts'

/** The time to generate, compile and run a client, with the downloads of its generator and its dependencies. */
const TIMEOUT_MS = 900_000

const GO_GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const JAVA_VERSION = '7.16.0'
const JAVA_ARTIFACT = `org.openapitools:openapi-generator-cli:${JAVA_VERSION}`
const javaGenerator =
  process.env.OPENAPI_GENERATOR_JAR ??
  join(
    homedir(),
    `.m2/repository/org/openapitools/openapi-generator-cli/${JAVA_VERSION}/openapi-generator-cli-${JAVA_VERSION}.jar`,
  )

const sources = fileURLToPath(new URL('./clients', import.meta.url))

const isGoMissing = isMissing('the generated client in Go', ['go'], 'Install Go 1.24 or later.')
const isPythonMissing = isMissing(
  'the generated client in Python',
  ['openapi-python-client'],
  'pip install openapi-python-client',
)
const isJavaMissing = isMissing(
  'the generated client in Java',
  ['java', 'javac', javaGenerator],
  `mvn dependency:get -Dartifact=${JAVA_ARTIFACT}`,
)

const runIn =
  (folder: string, env: NodeJS.ProcessEnv) =>
  async (command: string, ...args: readonly string[]): Promise<string> => {
    await using program = new Program({ command, args, cwd: folder, env: { ...process.env, ...env } })
    return await program.untilSucceeded()
  }

const documents = documentFiles.map(({ service, current }) => ({ service, path: fileURLToPath(current) }))

const listFiles = (folder: string, extension: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => join(folder, name))
    .filter(path => path.endsWith(extension) && statSync(path).isFile())

describe.skipIf(isGoMissing && isPythonMissing && isJavaMissing)(
  'a generated client reserves, commits, releases and holds a lease',
  () => {
    let services: Services
    let folder: string
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'pool-clients-'))
      services = await startServices()
    })
    afterAll(async () => {
      await services?.[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    })

    const prepare = (language: string) => {
      const work = join(folder, language)
      cpSync(join(sources, language), work, { recursive: true })
      const { apiUrl, witnessUrl, witnessTokens } = services
      const started = performance.now()
      return {
        work,
        run: runIn(work, { API_URL: apiUrl, WITNESS_URL: witnessUrl, WITNESS_TOKEN: witnessTokens[0].token }),
        report: (generator: string) =>
          reportProof(
            `${language}: the clients of ${generator} compile and run, in ${((performance.now() - started) / 1_000).toFixed(0)} s`,
          ),
      }
    }

    test.skipIf(isPythonMissing)('Python: openapi-python-client', { timeout: TIMEOUT_MS }, async () => {
      const { run, report } = prepare('python')
      for (const { service, path } of documents) {
        await run(
          'openapi-python-client',
          'generate',
          '--path',
          path,
          '--meta',
          'none',
          '--output-path',
          service.replace('-', '_'),
        )
      }
      // The generator and the clients use the same interpreter, so that httpx is installed.
      const [, interpreter = 'python3'] =
        /^#!(\S+)/.exec(await run('sh', '-c', 'cat "$(command -v openapi-python-client)"')) ?? []
      expect(await run(interpreter, 'main.py')).toContain('done')
      report('openapi-python-client')
    })

    // The others take a compiler minutes; one language shows that the documents can be used.
    if (!isProof) return

    test.skipIf(isGoMissing)('Go: oapi-codegen', { timeout: TIMEOUT_MS }, async () => {
      const { work, run, report } = prepare('go')
      for (const { service, path } of documents) {
        const name = service.replace('-', '')
        mkdirSync(join(work, name))
        await run(
          'go',
          'run',
          GO_GENERATOR,
          '-generate',
          'types,client',
          '-package',
          name,
          '-o',
          `${name}/client.go`,
          path,
        )
      }
      expect(await run('go', 'run', '.')).toContain('done')
      report('oapi-codegen')
    })

    test.skipIf(isJavaMissing)('Java: openapi-generator', { timeout: TIMEOUT_MS }, async () => {
      const { work, run, report } = prepare('java')
      for (const { service, path } of documents) {
        const name = `pool.${service.replace('-', '')}`
        const options = `invokerPackage=${name},apiPackage=${name}.api,modelPackage=${name}.model,openApiNullable=false`
        const parts = 'apis,models,supportingFiles,apiDocs=false,modelDocs=false,apiTests=false,modelTests=false'
        await run(
          'java',
          '-jar',
          javaGenerator,
          'generate',
          '-i',
          path,
          '-g',
          'java',
          '--library',
          'native',
          '-o',
          service,
          '--global-property',
          parts,
          '--additional-properties',
          options,
        )
      }
      const files = [...listFiles(work, '.java')].filter(file => !file.includes('/test/'))
      // The generator brings the libraries that the clients need.
      await run('javac', '-d', 'classes', '-proc:none', '-nowarn', '-cp', javaGenerator, ...files)
      expect(await run('java', '-cp', `classes${delimiter}${javaGenerator}`, 'Main')).toContain('done')
      report('openapi-generator')
    })
  },
)
