import PrismBase
import PrismProtocol
import Testing

@testable import PrismPacket

@Suite struct DeviceIDTests {
  @Test("a device id tells nothing of the machine id and is always the same") func deviceID() throws {
    let id = try DeviceID.derived(machineID: "0123456789abcdef0123456789abcdef")
    #expect(id.utf8.count == 32 && Hex.decode(id) != nil)
    #expect(try DeviceID.derived(machineID: "0123456789abcdef0123456789abcdef") == id)
    #expect(try DeviceID.derived(machineID: "1123456789abcdef0123456789abcdef") != id)
  }
}
