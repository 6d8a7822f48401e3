import PrismBase

/// The checks of a packet's device, its rate and whether it is revoked, and what its packets say of it.
struct DeviceGate: Sendable {
  /// Where devices are enrolled and revoked.
  let store: DeviceStore
  let admission: DeviceAdmission
  let standings: DeviceStandings
  let facts: DeviceFacts

  init(_ database: FleetDatabase, _ limits: DeviceLimits, time: any TimeSource, log: Logger) {
    store = DeviceStore(database)
    (standings, facts) = (DeviceStandings(store, time: time, log: log), DeviceFacts(in: database, time: time, log: log))
    admission = DeviceAdmission(limits, time: time)
  }

  /// Before the work for a packet, by the device that its headers name.
  func check(_ device: String) throws(CollectorRefusal) { try admission.check(device) }
}
