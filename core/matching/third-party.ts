// Packages that the distribution does not make (MAT-119): its advisories say nothing of them, whatever their names.
import type { PackageInstance } from './package-instance.ts'

/** Marks in the versions of dpkg packages of Raspberry Pi's and of personal archives. */
const VERSION_MARK = /\+rp[ti]|[~+]ppa/

/** Sources of dpkg packages that are known to come from their makers' own repositories. */
const VENDOR_SOURCES: ReadonlySet<string> = new Set([
  '1password',
  'anydesk',
  'azure-cli',
  'brave-browser',
  'code',
  'containerd.io',
  'datadog-agent',
  'discord',
  'docker-buildx-plugin',
  'docker-ce',
  'docker-ce-cli',
  'docker-ce-rootless-extras',
  'docker-compose-plugin',
  'docker-model-plugin',
  'docker-scan-plugin',
  'dropbox',
  'elasticsearch',
  'filebeat',
  'gitlab-ce',
  'gitlab-ee',
  'gitlab-runner',
  'google-chrome-beta',
  'google-chrome-stable',
  'google-cloud-cli',
  'google-cloud-sdk',
  'grafana',
  'grafana-enterprise',
  'heartbeat-elastic',
  'kibana',
  'logstash',
  'metricbeat',
  'microsoft-edge-stable',
  'mongodb-database-tools',
  'mongodb-mongosh',
  'mongodb-org',
  'newrelic-infra',
  'nvidia-container-toolkit',
  'opera-stable',
  'packages-microsoft-prod',
  'percona-release',
  'powershell',
  'puppet-agent',
  'signal-desktop',
  'slack-desktop',
  'spotify-client',
  'sublime-text',
  'tailscale',
  'teams',
  'teamviewer',
  'telegraf',
  'vagrant',
  'virtualbox-7.0',
  'virtualbox-7.1',
  'vivaldi-stable',
  'zoom',
])

/** How the vendor of an rpm begins, by the distribution whose rows it would be matched with. */
const VENDORS: Readonly<Record<string, RegExp>> = {
  rhel: /^(red hat|centos)/i,
  almalinux: /^almalinux/i,
  rocky: /^(rocky|resf)/i,
  suse: /^(opensuse|suse|novell)/i,
  opensuse: /^(opensuse|suse|novell)/i,
}

export function isThirdParty(instance: PackageInstance): boolean {
  switch (instance.system) {
    case 'dpkg':
      return VENDOR_SOURCES.has(instance.source) || VERSION_MARK.test(instance.version)
    case 'rpm': {
      if (instance.vendor === '') return false
      const own = VENDORS[instance.release.slice(0, instance.release.indexOf(':'))]
      return own !== undefined && !own.test(instance.vendor)
    }
    case 'apk':
      return false
  }
}
