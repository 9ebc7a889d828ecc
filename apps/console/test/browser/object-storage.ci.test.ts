import { findProgram } from '@pool/dev/server-process'
import { type Gateway, missingGateway, startGateway } from '@pool/test-kit/ceph/gateway.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchChromium, openPage, signIn, type Visitor } from '../support/browser.ts'
import { findKept } from '../support/secrets.ts'
import { skipsBrowser } from '../support/session.ts'
import { type ConsoleStack, startConsoleStack } from '../support/stack.ts'

// The wizard with object storage: a real gateway checks the keys, which leave nothing in the browser.

const missingTerraform = findProgram('terraform')
  ? undefined
  : 'Terraform is not installed: install terraform 1.11, to create deployments from the console.'
const skips = [skipsBrowser, shouldSkip(missingTerraform), shouldSkip(missingGateway)].includes(true)

const keys = { accessKey: 'MARKACCESSKEY0123456', secretKey: 'mark-secret-key-0123456789abcdefghijklmnop' }
const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f operator'
const BUCKET = 'catalyst-stored-pool-test'

const cleanup = new AsyncDisposableStack()
let stack: ConsoleStack
let visitor: Visitor
let page: Page

beforeAll(async () => {
  if (skips) return
  const gateway: Gateway = await startGateway({ names: ['*.storage.test'] })
  cleanup.defer(() => gateway.stop())
  await gateway.addUser(keys)
  stack = cleanup.use(
    await startConsoleStack({
      OBJECT_STORAGE_DOMAIN: `storage.test:${gateway.port}`,
      OBJECT_STORAGE_CA_FILE: gateway.caFile,
      NODE_OPTIONS: `--import=${import.meta.resolve('@pool/test-kit/ceph/storage-names.ts')}`,
    }),
  )
  const browser = await launchChromium()
  cleanup.defer(() => browser.close())
  visitor = await openPage(browser, stack.api.operatorUrl)
  page = visitor.page
  await signIn(page, stack.api.operatorUrl, stack.api.operatorToken)
})
afterAll(() => cleanup.disposeAsync())

const button = (name: string) => page.getByRole('button', { name, exact: true })
const next = () => button('Continue').click()
const checkKeys = async (accessKey: string, secretKey: string) => {
  await page.getByLabel('Access key').fill(accessKey)
  await page.getByLabel('Secret key').fill(secretKey)
  await button('Check the keys and continue').click()
}
const dialog = () => page.getByRole('dialog')

describe.skipIf(skips)('a deployment with object storage', () => {
  test('has keys that the provider has accepted, and they are forgotten afterwards', async () => {
    await page.keyboard.press('c')
    await page.getByLabel('Subdomain').fill('stored')
    await page.getByText('stored.pool.test is free.').waitFor()
    await next()
    await page.getByLabel('Organisation').fill('Globex')
    await page.getByLabel('Mail address').fill('ops@globex.example')
    await page.getByRole('checkbox', { name: 'hetzner' }).check()
    await page.getByLabel('Region').fill('fsn1')
    await next()

    await checkKeys('short', keys.secretKey)
    await page.getByText('The access key is too short').waitFor()
    await checkKeys(keys.accessKey, `${keys.secretKey}-wrong`)
    await expect.poll(() => page.getByLabel('Secret key').getAttribute('aria-invalid')).toBe('true')
    await checkKeys(keys.accessKey, keys.secretKey)

    // The keys are not kept over a reload, so that the form returns to their step.
    await page.getByLabel('SSH public key').fill(sshPublicKey)
    await page.reload()
    await page.getByLabel('Access key').waitFor()
    expect(await page.getByLabel('Access key').inputValue()).toBe('')
    await checkKeys(keys.accessKey, keys.secretKey)
    await page.getByText('The key is valid.').waitFor()
    await next()

    await page.getByText(BUCKET, { exact: true }).waitFor()
    await page.getByText('The same request with curl').click()
    expect(await page.locator('pre.code').textContent()).toContain('--rawfile secret secret-key')
    await button('Create the deployment').click()
    await page.getByText('The log is complete.').waitFor()
    expect(await findKept(page, [keys.accessKey, keys.secretKey, stack.api.operatorToken])).toEqual([])
    const [row] = await stack.sql`select row_to_json(deployments)::text as text from deployments`
    expect(row?.text).toContain(BUCKET)
    expect(row?.text).not.toContain(keys.secretKey)
  })

  test('is planned and destroyed with the keys, and its bucket stays claimed until that is lifted', async () => {
    await button('Destroy').click()
    await dialog().getByText(`The bucket ${BUCKET} and its content are kept.`).waitFor()
    await dialog().getByRole('button', { name: 'Destroy' }).click()
    await dialog().getByRole('alert').waitFor()
    await dialog().getByLabel('Access key').fill(keys.accessKey)
    await dialog().getByLabel('Secret key').fill(keys.secretKey)
    await dialog().getByRole('button', { name: 'Destroy' }).click()
    await button('Delete').waitFor()
    await page.getByRole('link', { name: 'Bucket claims' }).click()
    await button(`Lift the claim of ${BUCKET}`).click()
    await dialog().getByText('Another deployment can derive this bucket afterwards').waitFor()
    await dialog().getByRole('button', { name: 'Lift the claim' }).click()
    await page.getByText('No deployment has claimed a bucket.').waitFor()
    expect((await stack.client.listBucketClaims()).buckets).toEqual([])
    expect(await findKept(page, [keys.accessKey, keys.secretKey])).toEqual([])
    expect(visitor.faults).toEqual([])
  })
})
