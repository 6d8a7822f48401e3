import Glibc
import PrismBase
package import PrismPacket
import PrismProtocol

/// The collector that runs with a state folder, asked over the socket that only the folder's owner can open.
package final class RunningCollector {
  /// A page of records has 4 MiB of fields, and little more around them.
  private static let pageBytesMax = 16 * 1_048_576
  /// More than a packet may be held for its predecessor.
  private static let timeout: Duration = .seconds(120)

  private let socket: String
  private let handle: CurlHandle

  /// - Returns: nil if no collector runs there.
  package init?(state: String) throws(OutputFailure) {
    socket = FilePath.joined(state, "reader.sock")
    guard let address = UnixAddress(path: socket) else { return nil }
    let descriptor = address.connect()
    guard descriptor >= 0 else { return nil }
    close(descriptor)
    handle = try CurlHandle()
  }

  /// - Throws: if it does not answer as a collector does.
  package func take(_ packet: CarriedPacket) throws(OutputFailure) -> CarriedAnswer {
    let answer = try handle.post(
      packet.fileBytes, to: "http://localhost\(CarriedIntake.path)", headers: [], timeout: Self.timeout,
      unixSocket: socket)
    guard answer.status == 200, let json = try? JSONValue(parsing: answer.body), let taken = CarriedAnswer(json: json)
    else {
      throw OutputFailure("\(socket): answers \(answer.status); are both of one version of prism-collector?")
    }
    return taken
  }

  /// Asks a path of the API. - Throws: if it does not answer.
  func ask(
    _ method: String, _ path: String, headers: [String], body: [UInt8]
  ) throws(OutputFailure) -> CurlHandle.Answer {
    try handle.post(
      body, to: "http://localhost\(PageAPI.prefix)\(path)", headers: headers, timeout: Self.timeout, method: method,
      unixSocket: socket, answerBytesMax: Self.pageBytesMax)
  }
}
