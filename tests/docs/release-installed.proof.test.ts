import './release-installed.ci.test.ts'
