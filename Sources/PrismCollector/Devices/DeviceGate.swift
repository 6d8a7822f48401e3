import PrismBase

/// The checks of a packet's device: its rate, and whether it is revoked.
struct DeviceGate: Sendable {
  /// Where devices are enrolled and revoked.
  let store: DeviceStore
  let admission: DeviceAdmission
  let standings: DeviceStandings

  init(_ store: DeviceStore, _ limits: DeviceLimits, time: any TimeSource, log: Logger) {
    (self.store, standings) = (store, DeviceStandings(store, time: time, log: log))
    admission = DeviceAdmission(limits, time: time)
  }

  /// Before the work for a packet, by the device that its headers name.
  func check(_ device: String) throws(CollectorRefusal) { try admission.check(device) }
}
