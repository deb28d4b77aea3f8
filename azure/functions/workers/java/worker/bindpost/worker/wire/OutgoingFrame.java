package bindpost.worker.wire;

/** A message with its length before it: the first `length` of the bytes. */
final class OutgoingFrame {
    final byte[] bytes;
    final int length;

    OutgoingFrame(byte[] bytes, int length) {
        this.bytes = bytes;
        this.length = length;
    }
}
