import './upgrade.ci.test.ts'
