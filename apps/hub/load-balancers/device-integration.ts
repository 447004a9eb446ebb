// By which interface a device is read and told, by its integration.
import type { DeviceView } from '../../../core/load-balancing/device-difference.ts'
import type { Editor } from '../resources/editor.ts'
import { RunFailed } from '../resources/runs.ts'
import { callerOf, type DeviceCall, type WantedState } from './device-call.ts'
import { readHaproxy, writeHaproxy } from './haproxy-device.ts'
import type { LoadBalancer } from './load-balancer.ts'
import { readNginxPlus, writeNginxPlus } from './nginx-plus-device.ts'

type Integration = {
  readonly read: (call: DeviceCall) => Promise<DeviceView>
  readonly write: (call: DeviceCall, wanted: WantedState) => Promise<void>
}
const integrations: Readonly<Record<string, Integration>> = {
  haproxy_dataplane: { read: readHaproxy, write: writeHaproxy },
  nginx_plus: { read: readNginxPlus, write: writeNginxPlus },
}

function integrationOf({ integration }: LoadBalancer): Integration {
  const found = integrations[integration]
  if (!found) throw new RunFailed('the device has no integration')
  return found
}

/** What a device has. Throws RunFailed. */
export const readDevice = async (editor: Pick<Editor, 'hub'>, device: LoadBalancer): Promise<DeviceView> =>
  integrationOf(device).read(await callerOf(editor, device))

/** Tells a device the state of a member, and sees that it took it. Throws RunFailed. */
export const writeDevice = async (
  editor: Pick<Editor, 'hub'>,
  device: LoadBalancer,
  wanted: WantedState,
): Promise<void> => integrationOf(device).write(await callerOf(editor, device), wanted)
