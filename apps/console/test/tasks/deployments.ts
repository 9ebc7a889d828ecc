import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { findKept } from '../support/secrets.ts'
import { lookUp, SSH_PUBLIC_KEY, seedDeployment, type TxtServer } from '../support/seed.ts'
import { type ConsoleSuite, hasStorage, missingTerraform, skipsBrowser, storageKeys } from '../support/suite.ts'

const skipsTerraform = skipsBrowser || shouldSkip(missingTerraform)
const skipsStorage = skipsTerraform || !hasStorage

const BUCKET = 'catalyst-stored-pool-test'

/** An operator orders a deployment with the wizard and operates it, with real Terraform. */
export const testDeployments = (suite: ConsoleSuite, tenantDns: TxtServer): void => {
  const dialog = () => suite.page.getByRole('dialog')
  const button = (name: string) => suite.page.getByRole('button', { name, exact: true })
  const field = (label: string) => suite.page.getByLabel(label)
  const next = () => suite.press('Continue')
  const isInvalid = (label: string) => field(label).getAttribute('aria-invalid')
  const readDraft = () => suite.page.evaluate(() => JSON.stringify({ ...sessionStorage }))

  const openWizard = async () => {
    await suite.page.evaluate(() => sessionStorage.clear())
    await suite.open('/deployments/new')
    await field('Subdomain').waitFor()
  }
  const fillDomain = async (subdomain: string) => {
    await field('Subdomain').fill(subdomain)
    await suite.seeText(`${subdomain}.pool.test is free.`)
    await next()
    await field('Organisation').waitFor()
  }
  const fillOrganisation = async (provider: string, region: string) => {
    await field('Organisation').fill('Globex')
    await field('Mail address').fill('ops@globex.example')
    await suite.page.getByRole('checkbox', { name: provider }).check()
    await field('Region').fill(region)
    await next()
  }
  const fillSshKey = async () => {
    await field('SSH public key').fill(SSH_PUBLIC_KEY)
    await suite.seeText('The key is valid.')
  }

  describe.skipIf(skipsTerraform)('the wizard', () => {
    test('reports each error at its field, and a name that is taken as the operator types', async () => {
      const { page } = suite
      await suite.open('')
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      await page.keyboard.press('c')
      await page.getByRole('heading', { name: 'New deployment' }).waitFor()
      await suite.check('wizard')
      expect(await button('Discard the draft').count()).toBe(0)
      await next()
      await suite.seeText('The subdomain is required')
      await field('Subdomain').pressSequentially('soylent')
      const described = async () => {
        const ids = await field('Subdomain').getAttribute('aria-describedby')
        return page.locator(`[id="${ids?.split(' ').at(-1)}"]`).textContent()
      }
      await expect.poll(described).toMatch(/reserved/)
      await fillDomain('draft')
      await next()
      for (const name of ['organisation', 'mail address', 'region']) await suite.seeText(`The ${name} is required`)
      await suite.check('errors of the wizard')
      await field('Mail address').fill('nobody')
      await field('Organisation').focus()
      await suite.seeText('The mail address must be')
    })

    test('forgets a draft that is discarded, also over a reload', async () => {
      const { page } = suite
      await openWizard()
      await fillDomain('draft')
      await field('Organisation').fill('Globex')
      await suite.press('Discard the draft')
      await dialog().getByText('What you have entered is removed').waitFor()
      await suite.check('a draft to discard')
      await dialog().getByRole('button', { name: 'Discard' }).click()
      await suite.seeDone('The form is empty again.')
      expect(await readDraft()).not.toMatch(/draft"|Globex/)
      for (const isReloaded of [false, true]) {
        if (isReloaded) await page.reload()
        await field('Subdomain').waitFor()
        expect(await field('Subdomain').inputValue()).toBe('')
        expect(await button('Discard the draft').count()).toBe(0)
      }
    })

    test('has a challenge for a domain of the tenant', async () => {
      const { page } = suite
      await openWizard()
      await page.getByRole('radio', { name: 'A domain of the tenant' }).check()
      const domain = field('Domain of the tenant').last()
      await domain.fill('localhost')
      await next()
      await suite.seeText('The domain must be')
      await domain.fill('in.pool.test')
      await suite.seeText('The domain is in the pool pool.test')
      await next()
      expect(await domain.getAttribute('aria-invalid')).toBe('true')
      await domain.fill('cloud.globex.example')
      await suite.seeText('No deployment has cloud.globex.example.')
      await suite.press('Request the TXT record')
      await page.getByText('_pool-challenge.cloud.globex.example', { exact: true }).waitFor()
      await suite.seeText('The record is not visible yet.')
      await suite.check('the proof of a domain')
      tenantDns.texts.push((await page.getByRole('definition').nth(2).locator('code').textContent()) ?? '')
      await suite.seeText('The record is visible: the domain is proven.')
      const [row] = await suite.stack.sql`select count(*)::int as rows from domain_challenges`
      expect(row?.rows).toBe(1)
    })

    test('keeps its form over a reload, but no private key, and puts a rejection at its field', async () => {
      const { page, stack } = suite
      await openWizard()
      await fillDomain('race')
      await fillOrganisation('local', 'local')
      await field('SSH public key').waitFor()
      await page.goBack()
      expect(await field('Region').inputValue()).toBe('local')
      await page.goBack()
      expect(await field('Subdomain').inputValue()).toBe('race')
      await page.goForward()
      await page.goForward()
      await field('SSH public key').fill('ssh-ed25519 AAAA')
      await suite.seeText('The SSH key is damaged')
      await field('SSH public key').fill('-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END')
      await suite.seeText(/private key/)
      expect(await readDraft()).toContain('race')
      expect(await readDraft()).not.toContain('c2VjcmV0')
      await page.reload()
      expect(await field('SSH public key').inputValue()).toBe('')
      await fillSshKey()
      await next()
      await page.reload()
      await page.getByRole('heading', { name: 'Summary' }).waitFor()
      await page.getByText('race.pool.test', { exact: true }).waitFor()
      await stack.client.reserveName({ domain: 'pool.test', subdomain: 'race' })
      await suite.press('Create the deployment')
      await page.getByRole('heading', { name: 'Domain' }).waitFor()
      expect(await isInvalid('Subdomain')).toBe('true')
    })
  })

  describe.skipIf(skipsTerraform)('a deployment', () => {
    test('is created by its form and by curl once, and its log is live', async () => {
      const { page, stack } = suite
      const folder = mkdtempSync(join(tmpdir(), 'console-wizard-'))
      await openWizard()
      await fillDomain('initrode')
      await fillOrganisation('local', 'local')
      writeFileSync(join(folder, 'id_ed25519.pub'), `${SSH_PUBLIC_KEY}\n`)
      await field('Or read it from a file').setInputFiles(join(folder, 'id_ed25519.pub'))
      await suite.seeText('The key is valid.')
      await next()
      await page.getByText('The same request with curl').click()
      await suite.seeText('curl --silent')
      await suite.check('the summary of the wizard')
      const command = (await page.locator('pre.code').textContent()) ?? ''
      writeFileSync(join(folder, 'operator-token'), stack.api.operatorToken)
      const { id } = JSON.parse(execFileSync('bash', ['-c', command], { cwd: folder, encoding: 'utf8' }))
      rmSync(folder, { recursive: true, force: true })
      await suite.press('Create the deployment')
      await page.getByRole('heading', { name: 'initrode.pool.test' }).waitFor()
      expect(page.url()).toContain(id)
      await suite.seeText('The deployment is ready.')
      await suite.seeText('The log is complete.')
      await expect.poll(() => lookUp(stack.api.dnsServer, 'initrode.pool.test')).toHaveLength(1)
      await suite.open('/deployments')
      await suite.seeText('initrode')
      await suite.check('deployments')
      await page.getByRole('link', { name: 'initrode.pool.test' }).click()
    })

    test('has a log that is followed, searched and downloaded', async () => {
      const { page } = suite
      const follow = () => button('Follow').getAttribute('aria-pressed')
      await suite.seeText('The log is complete.')
      await page.getByRole('region', { name: 'Log' }).focus()
      await page.keyboard.press('Home')
      await suite.seeText('Reserved the name initrode.pool.test.')
      expect(await follow()).toBe('false')
      await page.keyboard.press('End')
      await expect.poll(follow).toBe('true')
      await page.keyboard.press('Home')
      await expect.poll(follow).toBe('false')
      // The end that Follow asks for must not move a reader who leaves it in the same frame.
      await page.evaluate(async () => {
        const log = document.querySelector('section[aria-label=Log]')
        const button = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Follow')
        if (!log || !button) throw new Error('The page shows no log.')
        button.click()
        for (let microtask = 0; microtask < 10; microtask++) await Promise.resolve()
        if (button.getAttribute('aria-pressed') !== 'true') throw new Error('The click is not rendered yet.')
        log.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true, cancelable: true }))
        for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
      })
      expect(await follow()).toBe('false')
      await suite.seeText('Reserved the name initrode.pool.test.')
      await page.keyboard.press('End')
      await expect.poll(follow).toBe('true')
      await field('Search the log').fill('apply')
      await page.locator('.log mark').first().waitFor()
      await suite.check('deployment')
      await field('Search the log').fill('no such line')
      await suite.seeText('No line matches.')
      await suite.check('a log without a match')
      const download = page.waitForEvent('download')
      await suite.press('Download')
      expect((await download).suggestedFilename()).toMatch(/^[0-9a-f-]{36}\.log$/)
    })

    test('is planned, and applied exactly as planned', async () => {
      const { page, stack } = suite
      await suite.press('Apply')
      await dialog().getByRole('button', { name: 'Apply', exact: true }).waitFor()
      await dialog().getByRole('button', { name: 'Show the plan' }).click()
      await dialog()
        .getByText(/^No changes/)
        .first()
        .waitFor()
      await suite.check('a plan to apply exactly')
      const sent = page.waitForRequest(request => request.url().endsWith('/apply'))
      await dialog().getByRole('button', { name: 'Apply exactly this plan' }).click()
      const { planHash } = (await sent).postDataJSON()
      await suite.seeText(`Plan ${planHash}.`)
      const [{ id = '' } = {}] = (await stack.client.listDeployments()).deployments
      await until('it is ready again', async () => (await stack.client.getDeployment({ id })).status === 'ready')
      await button('Destroy').waitFor()
    })

    test('is planned, destroyed and deleted', async () => {
      const { page, stack } = suite
      await suite.press('Abandon')
      await dialog().getByText('Nothing is destroyed.').waitFor()
      await suite.check('an abandonment')
      expect(await dialog().getByRole('button', { name: 'Abandon' }).isDisabled()).toBe(true)
      await dialog().getByRole('button', { name: 'Cancel' }).click()
      await suite.press('Destroy')
      await dialog().getByText('Terraform destroys the infrastructure of initrode.pool.test.').waitFor()
      await dialog().getByRole('button', { name: 'Show the plan' }).click()
      await dialog()
        .getByText(/to destroy/)
        .first()
        .waitFor()
      await expect.poll(() => dialog().locator('.code:focus .removed').count()).toBeGreaterThan(0)
      await suite.check('the plan of a deployment')
      const destroy = dialog().getByRole('button', { name: 'Destroy exactly this plan' })
      expect(await destroy.isDisabled()).toBe(true)
      await field('Type initrode.pool.test to confirm').fill('initrode.pool.test')
      await destroy.click()
      await button('Delete').waitFor()
      await expect.poll(() => lookUp(stack.api.dnsServer, 'initrode.pool.test')).toEqual([])
      await suite.press('Delete')
      await dialog().getByText('The deployment and its log are deleted').waitFor()
      await dialog().getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('heading', { name: 'Deployments', level: 1 }).waitFor()
      expect((await stack.client.listDeployments()).deployments).toEqual([])
    })

    test('is not deleted by a cancellation that the browser repeats after the end of the run', async () => {
      const { page, stack } = suite
      const id = await seedDeployment(stack, { pool: 'pool.test', subdomain: 'late', status: 'provisioning' })
      await suite.open(`/deployments/${id}`)
      await suite.press('Cancel the run')
      await dialog().getByText('Terraform is interrupted.').waitFor()
      await dialog().getByRole('checkbox', { name: 'End Terraform at once.' }).check()
      await suite.check('a cancellation')
      const sent = page.waitForRequest(request => request.method() === 'DELETE')
      await dialog().getByRole('button', { name: 'Cancel the run' }).click()
      const url = (await sent).url()
      await suite.seeDone('is being cancelled')
      await stack.sql`
        update deployments set status = 'failed', finished_at = now(), run_expires_at = null, error = 'Cancelled.'
        where id = ${id}`
      await page.evaluate(async path => (await fetch(path, { method: 'DELETE' })).text(), url)
      const [row] = await stack.sql`
        select status, cancelled_at is not null as "isCancelled", is_forced as "isForced" from deployments where id = ${id}`
      expect(row).toEqual({ status: 'failed', isCancelled: true, isForced: true })

      // It may have left something outside the state.
      const error = 'Delete what exists of them, then apply or destroy the deployment with unfinishedRemoved: true.'
      await stack.sql`update deployments set error = ${error} where id = ${id}`
      await page.reload()
      const bodies: unknown[] = []
      await page.route(/\/(?:apply|destroy)$/, async route => {
        bodies.push(route.request().postDataJSON())
        await route.fulfill({ status: 409, json: { error: 'in-progress', detail: 'An operation is in progress.' } })
      })
      for (const action of ['Apply', 'Destroy']) {
        await suite.press(action)
        await dialog().getByRole('checkbox', { name: 'What the error lists' }).check()
        if (action === 'Destroy') await field('Type late.pool.test to confirm').fill('late.pool.test')
        await suite.check(`a confirmation before ${action}`)
        await dialog().getByRole('button', { name: action, exact: true }).click()
        await dialog().getByRole('alert').waitFor()
        await dialog().getByRole('button', { name: 'Cancel' }).click()
      }
      await page.unroute(/\/(?:apply|destroy)$/)
      expect(bodies).toEqual([{ unfinishedRemoved: true }, { unfinishedRemoved: true }])
      await stack.client.removeDeployment({ id })
    })
  })

  describe.skipIf(skipsStorage)('a deployment with object storage', () => {
    const fillKeys = async (accessKey: string, secretKey: string) => {
      await field('Access key').fill(accessKey)
      await field('Secret key').fill(secretKey)
    }
    const checkKeys = async (accessKey: string, secretKey: string) => {
      await fillKeys(accessKey, secretKey)
      await suite.press('Check the keys and continue')
    }
    const { accessKey, secretKey } = storageKeys

    test('has keys that the provider has accepted, and they are forgotten afterwards', async () => {
      const { page, stack } = suite
      // The first request to a gateway can take longer than the service waits.
      await until('the gateway checks keys', () =>
        stack.client.validateObjectStorageKeys({ region: 'fsn1', ...storageKeys }).then(
          ({ valid }) => valid,
          () => false,
        ),
      )
      await openWizard()
      await fillDomain('stored')
      await fillOrganisation('hetzner', 'fsn1')

      await checkKeys('short', secretKey)
      await suite.seeText('The access key is too short')
      await checkKeys(accessKey, `${secretKey}-wrong`)
      await expect.poll(() => isInvalid('Secret key')).toBe('true')
      await checkKeys(accessKey, secretKey)
      await fillSshKey()

      // The keys are not kept over a reload, so that the form returns to their step.
      await page.reload()
      await field('Access key').waitFor()
      expect(await field('Access key').inputValue()).toBe('')
      await checkKeys(accessKey, secretKey)
      await suite.seeText('The key is valid.')
      await next()

      await page.getByText(BUCKET, { exact: true }).waitFor()
      await page.getByText('The same request with curl').click()
      expect(await page.locator('pre.code').textContent()).toContain('--rawfile secret secret-key')
      await suite.press('Create the deployment')
      await suite.seeText('The log is complete.')
      expect(await findKept(page, [accessKey, secretKey, stack.api.operatorToken])).toEqual([])
      const [row] =
        await stack.sql`select row_to_json(deployments)::text as text from deployments where sovereign_fqdn = 'stored.pool.test'`
      expect(row?.text).toContain(BUCKET)
      expect(row?.text).not.toContain(secretKey)
    })

    test('is destroyed with the keys, and its bucket stays claimed until that is lifted', async () => {
      const { page, stack } = suite
      // As after a run that made its bucket, whose provider is downloaded, which needs a network.
      await stack.sql`
        insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, is_permanent, is_created, claimed_at)
        select ${BUCKET}, lineage_id, sovereign_fqdn, true, true, now() from deployments
        where sovereign_fqdn = 'stored.pool.test' on conflict do nothing`
      await suite.press('Destroy')
      await dialog().getByText(`The bucket ${BUCKET} and its content are kept.`).waitFor()
      await field('Type stored.pool.test to confirm').fill('stored.pool.test')
      await dialog().getByRole('button', { name: 'Destroy' }).click()
      await dialog().getByRole('alert').waitFor()
      await fillKeys(accessKey, secretKey)
      await dialog().getByRole('button', { name: 'Destroy' }).click()
      await button('Delete').waitFor()
      await page.getByRole('link', { name: 'Bucket claims' }).click()
      await suite.press(`Lift the claim of ${BUCKET}`)
      await dialog().getByText('Another deployment can derive this bucket afterwards').waitFor()
      await suite.check('a bucket claim to lift')
      await dialog().getByRole('button', { name: 'Lift the claim' }).click()
      await suite.seeText('No deployment has claimed a bucket.')
      expect((await stack.client.listBucketClaims()).buckets).toEqual([])
      expect(await findKept(page, [accessKey, secretKey])).toEqual([])
    })
  })
}
