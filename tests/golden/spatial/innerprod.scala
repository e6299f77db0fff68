import spatial.dsl._

@spatial class alpha_kernel(bp: scala.Int = 8, ip: scala.Int = 16, sp: scala.Int = 1) extends SpatialTest {
  type T = Int
  def main(args: Array[String]): Unit = {
    val i_size = ArgIn[T]
    setArg(i_size, args(0).to[T])
    val B_entries1 = ArgIn[T]
    setArg(B_entries1, args(1).to[T])
    val j_bits = ArgIn[T]
    setArg(j_bits, args(2).to[T])
    val C_entries1 = ArgIn[T]
    setArg(C_entries1, args(3).to[T])
    val B_entries2 = ArgIn[T]
    setArg(B_entries2, args(4).to[T])
    val k_bits = ArgIn[T]
    setArg(k_bits, args(5).to[T])
    val C_entries2 = ArgIn[T]
    setArg(C_entries2, args(6).to[T])
    val B_pos1_host = DRAM[T](i_size.value + 1)
    setMem(B_pos1_host, loadCSV1D[T]("B_pos1_host.csv"))
    val C_pos1_host = DRAM[T](i_size.value + 1)
    setMem(C_pos1_host, loadCSV1D[T]("C_pos1_host.csv"))
    val B_crd1_host = DRAM[T](B_entries1.value)
    setMem(B_crd1_host, loadCSV1D[T]("B_crd1_host.csv"))
    val C_crd1_host = DRAM[T](C_entries1.value)
    setMem(C_crd1_host, loadCSV1D[T]("C_crd1_host.csv"))
    val B_pos2_host = DRAM[T](B_entries1.value + 1)
    setMem(B_pos2_host, loadCSV1D[T]("B_pos2_host.csv"))
    val C_pos2_host = DRAM[T](C_entries1.value + 1)
    setMem(C_pos2_host, loadCSV1D[T]("C_pos2_host.csv"))
    val B_crd2_host = DRAM[T](B_entries2.value)
    setMem(B_crd2_host, loadCSV1D[T]("B_crd2_host.csv"))
    val C_crd2_host = DRAM[T](C_entries2.value)
    setMem(C_crd2_host, loadCSV1D[T]("C_crd2_host.csv"))
    val B_vals_host = DRAM[T](B_entries2.value)
    setMem(B_vals_host, loadCSV1D[T]("B_vals_host.csv"))
    val C_vals_host = DRAM[T](C_entries2.value)
    setMem(C_vals_host, loadCSV1D[T]("C_vals_host.csv"))
    val alpha_out = ArgOut[T]
    Accel {
      val B_pos1_sparse = SparseDRAM[T](bp)(i_size.value + 1, true)
      B_pos1_sparse.alias = B_pos1_host
      val C_pos1_sparse = SparseDRAM[T](bp)(i_size.value + 1, true)
      C_pos1_sparse.alias = C_pos1_host
      val B_pos2_sparse = SparseDRAM[T](bp)(B_entries1.value + 1, true)
      B_pos2_sparse.alias = B_pos2_host
      val C_pos2_sparse = SparseDRAM[T](bp)(C_entries1.value + 1, true)
      C_pos2_sparse.alias = C_pos2_host
      val B_vals_sparse = SparseDRAM[T](bp)(B_entries2.value, true)
      B_vals_sparse.alias = B_vals_host
      val C_vals_sparse = SparseDRAM[T](bp)(C_entries2.value, true)
      C_vals_sparse.alias = C_vals_host
      val total_3 = Reg[T](0.to[T])
      Reduce(total_3)(i_size.value by 1 par bp) { i =>
        val B_1_begin = B_pos1_sparse.barrierRead(i, Seq())
        val B_1_end = B_pos1_sparse.barrierRead(i + 1, Seq())
        val B_1_length = B_1_end - B_1_begin
        val C_1_begin = C_pos1_sparse.barrierRead(i, Seq())
        val C_1_end = C_pos1_sparse.barrierRead(i + 1, Seq())
        val C_1_length = C_1_end - C_1_begin
        val B_crd1 = FIFO[T](16).retiming
        B_crd1_host stream_load_vec(B_1_begin, B_1_length, B_crd1)
        val B_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, B_1_length, B_crd1, B_bits)
        val C_crd1 = FIFO[T](16).retiming
        C_crd1_host stream_load_vec(C_1_begin, C_1_length, C_crd1)
        val C_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, C_1_length, C_crd1, C_bits)
        val total_2 = Reg[T](0.to[T])
        Reduce(total_2)(ScanRed(sp, j_bits.value, "and", B_bits.deq, C_bits.deq)) { case List(j, j_left, j_out, j_right) =>
          val B_2_begin = B_pos2_sparse.barrierRead(B_1_begin + j_left, Seq())
          val B_2_end = B_pos2_sparse.barrierRead(B_1_begin + j_left + 1, Seq())
          val B_2_length = B_2_end - B_2_begin
          val C_2_begin = C_pos2_sparse.barrierRead(C_1_begin + j_right, Seq())
          val C_2_end = C_pos2_sparse.barrierRead(C_1_begin + j_right + 1, Seq())
          val C_2_length = C_2_end - C_2_begin
          val B_crd2 = FIFO[T](16).retiming
          B_crd2_host stream_load_vec(B_2_begin, B_2_length, B_crd2)
          val B_bits_2 = FIFO[U32](4096)
          gen_bitvector(0, k_bits.value, B_2_length, B_crd2, B_bits_2)
          val C_crd2 = FIFO[T](16).retiming
          C_crd2_host stream_load_vec(C_2_begin, C_2_length, C_crd2)
          val C_bits_2 = FIFO[U32](4096)
          gen_bitvector(0, k_bits.value, C_2_length, C_crd2, C_bits_2)
          val total = Reg[T](0.to[T])
          Reduce(total)(ScanRed(16, k_bits.value, "and", B_bits_2.deq, C_bits_2.deq)) { case List(k, k_left, k_out, k_right) =>
            val B_value = B_vals_sparse.barrierRead(B_2_begin + k_left, Seq())
            val C_value = C_vals_sparse.barrierRead(C_2_begin + k_right, Seq())
            B_value * C_value
          } { _ + _ }
          total.value
        } { _ + _ }
        total_2.value
      } { _ + _ }
      val alpha_value = total_3.value
      alpha_out := alpha_value
    }
    println(getArg(alpha_out))
  }
}
